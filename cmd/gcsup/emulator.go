package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gcsup/fakegcs"
	"gcsup/internal/pipenet"
	"gcsup/session"
	"gcsup/upload/gcs"
)

func newEmulator(std stdio) *cobra.Command {
	var addr, faults string
	var opts fakegcs.Options
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Serve an emulator of Cloud Storage",
		Long: `emulator serves Cloud Storage on this machine, for tests and demonstrations. When
it is ready it prints one line, which makes clients use it:

  export STORAGE_EMULATOR_HOST=http://HOST:PORT

It asks for no credentials. It ends on SIGINT or SIGTERM.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if faults != "" {
				plan, err := readFaults(faults)
				if err != nil {
					return err
				}
				opts.Faults = plan
			}
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return usagef("--addr %q: want HOST:PORT; port 0 takes a free one", addr)
			}
			return serveEmulator(cmd.Context(), std, addr, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&addr, "addr", "127.0.0.1:4443", "listen on `HOST:PORT`; port 0 takes a free one")
	flags.StringVar(&opts.Dir, "dir", "", "keep everything in `DIR`, and go on with what is there (default: in memory)")
	flags.StringVar(&faults, "faults", "", "act on the fault plan in `FILE`, a JSON array")
	flags.BoolVar(&opts.CreateBuckets, "create-buckets", false, "make a bucket when it is first named")
	return cmd
}

func readFaults(path string) ([]fakegcs.Fault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, kinded{err, errSource}
	}
	defer f.Close()
	plan, err := fakegcs.ParseFaults(f)
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	return plan, nil
}

// serveEmulator serves until ctx ends.
func serveEmulator(ctx context.Context, std stdio, addr string, opts fakegcs.Options) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	defer ln.Close()
	e, err := newEmulated(opts)
	if err != nil {
		return err
	}
	failed := e.serve(ln)
	if _, err := fmt.Fprintf(std.out, "export STORAGE_EMULATOR_HOST=http://%s\n", reachable(ln.Addr())); err != nil {
		return errors.Join(fmt.Errorf("standard output: %w", err), e.close())
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, e.close())
}

// reachable is an address that a client on this machine can use.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	host := "127.0.0.1"
	if tcp.IP.To4() == nil {
		host = "::1"
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// emulated is an emulator with the HTTP server in front of it.
type emulated struct {
	server *fakegcs.Server
	http   *http.Server
}

// newEmulated opens an emulator; its directory is then this process's alone.
func newEmulated(opts fakegcs.Options) (*emulated, error) {
	server, err := fakegcs.New(&opts)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Op == "lock" {
			return nil, kinded{fmt.Errorf("emulator: another process uses %s; wait for it, or give another directory", opts.Dir), session.ErrInUse}
		}
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return &emulated{server, &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}}, nil
}

// serve serves on ln in the background; the channel gives the error that ends
// it early.
func (e *emulated) serve(ln net.Listener) <-chan error {
	failed := make(chan error, 1)
	go func() {
		if err := e.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("emulator: %w", err)
		}
	}()
	return failed
}

// close ends requests under way as if the network had gone, so that what they
// brought is kept.
func (e *emulated) close() error {
	return errors.Join(e.server.Close(), e.http.Close())
}

// localEmulator is the emulator of --emulator: it serves this process alone,
// over a network inside it.
type localEmulator struct {
	*emulated
	dir       string
	endpoint  string
	transport http.RoundTripper
}

// startLocal starts an emulator on dir. The endpoint is a name for the
// directory and reaches nothing else, so that an upload has the same ID in the
// next process: https://www.rfc-editor.org/rfc/rfc6761#section-6.4.
func startLocal(dir string) (*localEmulator, error) {
	e, err := newEmulated(fakegcs.Options{Dir: dir, CreateBuckets: true})
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	ln, dial := pipenet.Listen()
	e.serve(ln)
	transport := gcs.NewTransport()
	transport.Proxy = nil
	transport.DialContext = dial
	return &localEmulator{
		emulated: e, dir: dir, transport: transport,
		endpoint: "http://emulator-" + hex.EncodeToString(sum[:4]) + ".invalid",
	}, nil
}

// where says where the emulator keeps the bytes of an object.
func (e *localEmulator) where() string {
	return "the emulator keeps its objects in " + e.dir
}

func (e *localEmulator) close() { _ = e.emulated.close() }
