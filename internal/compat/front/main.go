// Command front passes requests for https://storage.googleapis.com on to the emulator at
// STORAGE_EMULATOR_HOST. It is for programs whose address of the service is fixed: it is an HTTP proxy
// (HTTPS_PROXY), and has a certificate for that name. It prints its own address, and writes its
// certificate authority to the file in its argument.
package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	"gcsup/fakegcs"
)

const service = "storage.googleapis.com"

func main() {
	if err := run(os.Getenv("STORAGE_EMULATOR_HOST"), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "front:", err)
		os.Exit(1)
	}
}

func run(emulator, authority string) error {
	target, err := url.Parse(emulator)
	if err != nil {
		return err
	}
	cert, ca, err := fakegcs.NewCertificate(service)
	if err != nil {
		return err
	}
	if err := os.WriteFile(authority, ca, 0o600); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	tunnels := &tunnels{make(chan net.Conn), ln.Addr()}
	reverse := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = target.Host
	}}
	go func() {
		srv := &http.Server{Handler: reverse}
		_ = srv.Serve(tls.NewListener(tunnels, &tls.Config{Certificates: []tls.Certificate{cert}}))
	}()
	fmt.Println("http://" + ln.Addr().String())
	return http.Serve(ln, http.HandlerFunc(tunnels.connect))
}

// tunnels is a listener of the connections that clients make through the proxy.
type tunnels struct {
	conns chan net.Conn
	addr  net.Addr
}

func (t *tunnels) Accept() (net.Conn, error) { return <-t.conns, nil }
func (t *tunnels) Close() error              { return nil }
func (t *tunnels) Addr() net.Addr            { return t.addr }

// connect answers a CONNECT for the service. Everything else is refused.
func (t *tunnels) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Host != service+":443" {
		http.Error(w, "this proxy connects only to "+service, http.StatusForbidden)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
		_ = conn.Close()
		return
	}
	t.conns <- tunnel{conn, buffered.Reader}
}

// tunnel is a hijacked connection, whose first bytes can be buffered.
type tunnel struct {
	net.Conn
	from *bufio.Reader
}

func (t tunnel) Read(p []byte) (int, error) { return t.from.Read(p) }
