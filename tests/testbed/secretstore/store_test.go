package secretstore

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

func TestStoreKeepsItsDataOverARestart(t *testing.T) {
	store := Run(t, Options{Log: os.Stderr})
	if err := store.MountKV(t.Context(), "old", 1); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"color": "blue"}
	if _, err := store.Client().KVv2("secret").Put(t.Context(), "app/db", data); err != nil {
		t.Fatal(err)
	}
	if err := store.Client().KVv1("old").Put(t.Context(), "app", data); err != nil {
		t.Fatal(err)
	}
	if err := store.Start(t.Context()); err == nil {
		t.Error("a second server was started")
	}

	store.Kill()
	if _, err := store.Client().KVv2("secret").Get(t.Context(), "app/db"); err == nil {
		t.Error("the store answers after it was killed")
	}
	start := time.Now()
	if err := store.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart of the store: %v", time.Since(start))
	got, err := store.Client().KVv2("secret").Put(t.Context(), "app/db", map[string]any{"color": "red"})
	if err != nil || got.VersionMetadata.Version != 2 {
		t.Errorf("%+v, %v, want version 2", got, err)
	}
	if got, err := store.Client().KVv1("old").Get(t.Context(), "app"); err != nil || got.Data["color"] != "blue" {
		t.Errorf("%+v, %v, want what was written before", got, err)
	}
}

func TestSealedStoreServesAgain(t *testing.T) {
	store := Run(t, Options{Log: os.Stderr})
	if err := store.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.MountKV(t.Context(), "more", 2); err == nil {
		t.Error("a sealed store has taken a mount")
	}
	if err := store.Unseal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.MountKV(t.Context(), "more", 2); err != nil {
		t.Error(err)
	}
}

func TestStoppedStoreLeavesNothing(t *testing.T) {
	store := Run(t, Options{Log: os.Stderr})
	store.Stop()
	store.Stop()
	if !store.Process().Ended() {
		t.Error("the server runs")
	}
	if _, err := os.Stat(store.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := store.Start(t.Context()); err == nil {
		t.Error("a server was started after Stop")
	}
}
