package events

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestStoreAddress_AddressesThatMeanTheSameAreWrittenAlike(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"a scheme and a host in capitals", "HTTPS://Bao.Example", "https://bao.example"},
		{"the port of the scheme", "https://bao:443", "https://bao"},
		{"the port of the scheme behind an IPv6 address", "http://[::1]:80", "http://[::1]"},
		{"a path, which has capitals", "https://gate/Vault/", "https://gate/Vault"},
		{"an escape in the path, which is kept", "https://gate/team%2Fbao/", "https://gate/team%2Fbao"},
		{"no scheme", "Bao:8200", "bao:8200"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.WantEqual(t, "address", test.want, StoreAddress(test.text))
			if again := StoreAddress(test.want); again != test.want {
				t.Errorf("the normal form %q becomes %q", test.want, again)
			}
		})
	}
}
