package events

import "testing"

func TestStoreAddress_AddressesThatMeanTheSameAreWrittenAlike(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a scheme and a host in capitals", "HTTPS://Bao.Example", "https://bao.example"},
		{"the port of the scheme", "https://bao:443", "https://bao"},
		{"the port of the scheme behind an IPv6 address", "http://[::1]:80", "http://[::1]"},
		{"a path, which has capitals", "https://gate/Vault/", "https://gate/Vault"},
		{"an escape in the path, which is kept", "https://gate/team%2Fbao/", "https://gate/team%2Fbao"},
		{"no scheme", "Bao:8200", "bao:8200"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := StoreAddress(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if again := StoreAddress(test.want); again != test.want {
				t.Errorf("the normal form %q becomes %q", test.want, again)
			}
		})
	}
}
