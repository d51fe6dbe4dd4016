package emulator

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// localHost passes only requests whose Host names this machine, if the server listens on a
// loopback address. Otherwise a web page could read and change it from the user's browser, through a
// name that resolves to that address (DNS rebinding).
func localHost(listens net.Addr, next http.Handler) http.Handler {
	tcp, ok := listens.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.IsAbs() && !isLocalHost(r.Host) { // a proxy gets absolute URLs
			http.Error(w, "emulator: the Host header names another machine; use localhost or "+tcp.String(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocalHost reports whether a Host header names this machine.
func isLocalHost(header string) bool {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // https://www.rfc-editor.org/rfc/rfc6761#section-6.3
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
