package openbao

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// socketAddress is the address of a receiver of the socket audit device.
type socketAddress struct{ network, address string }

// parseSocketAddress reads host:port or unix:/path.
func parseSocketAddress(text string) (socketAddress, error) {
	if path, isUnix := strings.CutPrefix(text, "unix:"); isUnix {
		if !strings.HasPrefix(path, "/") {
			return socketAddress{}, fmt.Errorf("%q is not an address, want unix: and an absolute path", text)
		}
		return socketAddress{network: "unix", address: path}, nil
	}
	if _, _, err := net.SplitHostPort(text); err != nil {
		return socketAddress{}, fmt.Errorf("%q is not an address, want host:port or unix:/path", text)
	}
	return socketAddress{network: "tcp", address: text}, nil
}

// local reports whether only this host can connect.
func (a socketAddress) local() bool {
	if a.network == "unix" {
		return true
	}
	host, _, _ := net.SplitHostPort(a.address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// allowed reports whether a peer may connect: always if it is on this host, and otherwise if one of the networks contains its address.
func allowed(peer net.Addr, networks []netip.Prefix) bool {
	tcp, isTCP := peer.(*net.TCPAddr)
	if !isTCP {
		return true
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if ip.IsLoopback() {
		return true
	}
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}
