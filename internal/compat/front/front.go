// Package front passes requests for https://storage.googleapis.com on to the emulator at
// STORAGE_EMULATOR_HOST, and those for access tokens of Google. It is for programs whose address of the
// service is fixed, or that have credentials: it is an HTTP proxy (HTTPS_PROXY), and has a certificate for
// these names. It prints its own address, and writes its certificate authority to the file in its first
// argument, and the key of a service account that does not exist to that in its second one, if there is one.
package front

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"

	"gcsup/fakegcs"
)

const service = "storage.googleapis.com"

// tokens are the URLs at which Google's libraries get access tokens, without the scheme. The emulator has
// one path for them.
var tokens = []string{"oauth2.googleapis.com/token", "www.googleapis.com/oauth2/v4/token"}

const tokenPath = "/_fakegcs/token"

// Main is the program. It returns its exit code.
func Main(args []string) int {
	err := error(nil)
	if len(args) > 1 {
		err = writeAccount(args[1])
	}
	if err == nil {
		err = run(os.Getenv("STORAGE_EMULATOR_HOST"), args[0])
	}
	fmt.Fprintln(os.Stderr, "front:", err)
	return 1
}

func run(emulator, authority string) error {
	target, err := url.Parse(emulator)
	if err != nil {
		return err
	}
	cert, ca, err := fakegcs.NewCertificate(names()...)
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
		if slices.Contains(tokens, r.In.Host+r.In.URL.Path) {
			r.Out.URL.Path = tokenPath
		}
		r.SetURL(target)
		r.Out.Host = target.Host
	}}
	go func() {
		srv := &http.Server{Handler: reverse}
		_ = srv.Serve(tls.NewListener(tunnels, &tls.Config{
			Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, // gRPC is refused, and not only its connection
		}))
	}()
	fmt.Println("http://" + ln.Addr().String())
	return http.Serve(ln, http.HandlerFunc(tunnels.connect))
}

// writeAccount writes the key of a new service account to a file.
func writeAccount(file string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "project-main", "client_email": "main@project-main.iam.gserviceaccount.com",
		"client_id": "1", "private_key_id": "1", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri": "https://" + tokens[0],
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// names returns the host names for which requests are passed on.
func names() []string {
	list := []string{service}
	for _, url := range tokens {
		host, _, _ := strings.Cut(url, "/")
		list = append(list, host)
	}
	return list
}

// tunnels is a listener of the connections that clients make through the proxy.
type tunnels struct {
	conns chan net.Conn
	addr  net.Addr
}

func (t *tunnels) Accept() (net.Conn, error) { return <-t.conns, nil }
func (t *tunnels) Close() error              { return nil }
func (t *tunnels) Addr() net.Addr            { return t.addr }

// connect answers a CONNECT for one of the names. Everything else is refused.
func (t *tunnels) connect(w http.ResponseWriter, r *http.Request) {
	host, port, _ := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || port != "443" || !slices.Contains(names(), host) {
		http.Error(w, "this proxy connects only to "+strings.Join(names(), ", "), http.StatusForbidden)
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
