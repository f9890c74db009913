package openbao

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWalk_ReturnsTheSecretsInAllFolders(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/metadata?list", http.StatusOK, `{"data":{"keys":["a","folder/","locked/"]}}`)
	store.say("secret/metadata/folder?list", http.StatusOK, `{"data":{"keys":["b","deep/"]}}`)
	store.say("secret/metadata/folder/deep?list", http.StatusOK, `{"data":{"keys":["c"]}}`)
	store.say("secret/metadata/locked?list", http.StatusForbidden, `{"errors":["permission denied"]}`)
	in := engineMount{namespace: "root", path: "secret", engine: "kv", version: kvV2}
	tolerated := 0
	got, err := walk(t.Context(), clientOf(t, store), in, "metadata", func(error) bool { tolerated++; return true })
	if diff := cmp.Diff([]string{"a", "folder/b", "folder/deep/c"}, got); diff != "" || err != nil || tolerated != 1 {
		t.Errorf("%v, %d folders tolerated; paths (-want +got):\n%s", err, tolerated, diff)
	}
	if _, err := walk(t.Context(), clientOf(t, store), in, "metadata", func(error) bool { return false }); code(err) != http.StatusForbidden {
		t.Errorf("%v, want the error of the folder", err)
	}
}
