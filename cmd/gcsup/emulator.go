package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/fakegcs"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/session/state"
)

func newEmulator(std stdio) *cobra.Command {
	var f emulatorFlags
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Serve an emulator of Cloud Storage",
		Long: `emulator serves Cloud Storage on this machine, for tests and demonstrations. When
it is ready it prints one line, a command that makes clients use it:

  export STORAGE_EMULATOR_HOST=http://HOST:PORT

Clients on this machine can use that address even if --addr names all addresses.
Requests that the emulator does not implement are refused with status 400, and
reported once on standard error.

It ends on SIGINT, SIGTERM or SIGHUP. With --tls it creates a certificate authority, and
prints the path of its file to standard error. It requires no credentials, except with
--require-token: then it creates a credentials file, and prints its path.

While it runs, HTTP requests to /_fakegcs/ show and change the fault plan, the
requests so far and the clock; see the documentation of package fakegcs.`,
		Example: `  gcsup emulator --create-buckets
  gcsup emulator --addr 127.0.0.1:9000 --dir objects --random-faults 20`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen := f.randomFaults > 0 && !cmd.Flags().Changed("fault-seed")
			if chosen {
				f.faultSeed = rand.Uint64()
			}
			opts, err := f.options(std, cmd.Flags())
			if err != nil {
				return err
			}
			if chosen {
				if _, err := fmt.Fprintf(std.err, "--fault-seed=%d makes the same faults again\n", f.faultSeed); err != nil {
					return fmt.Errorf("standard error: %w", err)
				}
			}
			return serveEmulator(cmd.Context(), std, f, opts)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// emulatorFlags are the flags of the command.
type emulatorFlags struct {
	addr, dir, seed, faults, log  string
	createBuckets, discard, noMD5 bool
	tls, http2                    bool
	requireToken, noTokens        bool
	runningHash, query308         bool
	latency                       time.Duration
	splitAfter                    time.Duration
	rate, totalRate, faultSpan    cmdline.Size
	randomFaults, bucketRate      int
	faultSeed                     uint64
}

func (f *emulatorFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.addr, "addr", "127.0.0.1:4443", "listen on `HOST:PORT`; port 0 takes a free one")
	fs.StringVar(&f.dir, "dir", "", "keep everything in `DIR`, and continue with what it contains (default: in memory)")
	fs.StringVar(&f.seed, "seed", "", "begin with the objects in `DIR`: a folder for each bucket, in it a file for each object")
	fs.StringVar(&f.faults, "faults", "", "use the fault plan in `FILE`, a JSON array")
	fs.IntVar(&f.randomFaults, "random-faults", 0, "`N` random faults during uploads; none is permanent")
	fs.Uint64Var(&f.faultSeed, "fault-seed", 0, "with --random-faults: the same `SEED` gives the same faults (default: another each time)")
	f.faultSpan = 16 << 20
	fs.Var(&f.faultSpan, "fault-span", "with --random-faults: `SIZE` of the uploads, within which connections are cut")
	fs.BoolVar(&f.createBuckets, "create-buckets", false, "create a bucket when it is first named")
	fs.BoolVar(&f.tls, "tls", false, "serve https")
	fs.BoolVar(&f.http2, "http2", true, "with --tls, offer HTTP/2")
	fs.DurationVar(&f.latency, "latency", 0, "delay each reply by `DURATION`")
	fs.Var(&f.rate, "rate", "bytes per second of each connection, such as 10MiB (default: no limit)")
	fs.Var(&f.totalRate, "total-rate", "bytes per second of all connections together (default: no limit)")
	fs.IntVar(&f.bucketRate, "bucket-rate", 0, "answer 429 to more than `N` writes per second to a range of the names of a bucket (default: no limit)")
	fs.DurationVar(&f.splitAfter, "bucket-split-after", 20*time.Minute, "with --bucket-rate: divide a range of names after this `DURATION` of load")
	fs.BoolVar(&f.discard, "discard", false, "keep sizes and checksums of objects only, not their bytes")
	fs.BoolVar(&f.noMD5, "no-md5", false, "compute no MD5, which costs more than everything else together")
	fs.BoolVar(&f.noTokens, "no-idempotency-tokens", false, "execute a request again even if it repeats an idempotency token")
	fs.BoolVar(&f.requireToken, "require-token", false, "answer 401 to requests without an access token of this emulator")
	fs.BoolVar(&f.runningHash, "running-hash", false, "send the CRC32C of the committed bytes, as the service sometimes does")
	fs.BoolVar(&f.query308, "query-308", false, "answer status queries with 308 even if the client asks for 200, as Google's test bench does")
	fs.StringVar(&f.log, "log", "", "write requests to standard error, as `text|json`")
}

// options returns the emulator's options for the flags.
func (f *emulatorFlags) options(std stdio, given *pflag.FlagSet) (fakegcs.Options, error) {
	opts := fakegcs.Options{
		Dir: f.dir, CreateBuckets: f.createBuckets, Discard: f.discard, NoMD5: f.noMD5,
		Latency: f.latency, Rate: int64(f.rate), TotalRate: int64(f.totalRate),
		BucketRate: f.bucketRate, SplitAfter: f.splitAfter,
		Logger:       slog.New(slog.NewTextHandler(std.err, nil)), // the directory, and what is not implemented
		RequireToken: f.requireToken, RunningHash: f.runningHash, Query308: f.query308,
		NoIdempotencyTokens: f.noTokens,
	}
	switch {
	case f.randomFaults == 0 && (given.Changed("fault-seed") || given.Changed("fault-span")):
		return opts, exit.Usagef("--fault-seed and --fault-span need --random-faults")
	case given.Changed("http2") && !f.tls:
		return opts, exit.Usagef("--http2 needs --tls")
	case f.randomFaults < 0:
		return opts, exit.Usagef("--random-faults %d: want a number that isn't negative", f.randomFaults)
	case f.bucketRate < 0:
		return opts, exit.Usagef("--bucket-rate %d: want a number that isn't negative", f.bucketRate)
	case f.bucketRate == 0 && given.Changed("bucket-split-after"):
		return opts, exit.Usagef("--bucket-split-after needs --bucket-rate")
	case f.splitAfter <= 0:
		return opts, exit.Usagef("--bucket-split-after %v: want a duration of more than 0", f.splitAfter)
	case f.latency < 0:
		return opts, exit.Usagef("--latency %v: want a duration that isn't negative", f.latency)
	}
	if _, _, err := net.SplitHostPort(f.addr); err != nil {
		return opts, exit.Usagef("--addr %q: want HOST:PORT; port 0 takes a free one", f.addr)
	}
	switch f.log {
	case "":
	case "text":
		opts.OnRequest = requestLog(std.err, requestText)
	case "json":
		opts.OnRequest = requestLog(std.err, requestJSON)
		opts.Logger = slog.New(slog.NewJSONHandler(std.err, nil))
	default:
		return opts, exit.Usagef("--log %q: want text or json", f.log)
	}
	if f.seed != "" {
		if info, err := os.Stat(f.seed); err != nil {
			return opts, exit.WithKind(err, exit.ErrSource)
		} else if !info.IsDir() {
			return opts, exit.Usagef("--seed %s: not a directory", f.seed)
		}
		opts.Seed = os.DirFS(f.seed)
	}
	if f.faults != "" {
		plan, err := readFaults(f.faults)
		if err != nil {
			return opts, err
		}
		opts.Faults = plan
	}
	if f.randomFaults > 0 {
		opts.Faults = append(opts.Faults, fakegcs.RandomFaults(f.faultSeed, f.randomFaults, int64(f.faultSpan))...)
	}
	return opts, nil
}

// requestLog writes a line for each request. It ignores write errors.
func requestLog(w io.Writer, line func(fakegcs.Request) string) func(fakegcs.Request) {
	var mu sync.Mutex
	return func(r fakegcs.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(w, line(r))
	}
}

// requestText returns a request as a line for people.
func requestText(r fakegcs.Request) string {
	status := fmt.Sprint(r.Status)
	if r.Status == 0 {
		status = "no reply"
	}
	name := r.Bucket + "/" + r.Object
	if strings.ContainsFunc(name, func(c rune) bool { return !strconv.IsPrint(c) }) {
		name = strconv.Quote(name) // a name must not look like another line
	}
	text := fmt.Sprintf("%s %-6s %-13s %s: %s", r.Time.Format("15:04:05.000"), r.Method, r.Op, name, status)
	for _, part := range []struct{ before, value string }{
		{", sent ", r.ContentRange}, {", committed ", r.Range}, {", fault ", string(r.Fault)},
	} {
		if part.value != "" {
			text += part.before + part.value
		}
	}
	if r.Replayed {
		text += ", the first reply again"
	}
	return fmt.Sprintf("%s (%d bytes in, %d out, %v)", text, r.Received, r.Sent, r.Elapsed.Round(time.Microsecond))
}

// requestJSON returns a request as one line of JSON.
func requestJSON(r fakegcs.Request) string {
	line, err := json.Marshal(r)
	if err != nil { // cannot happen: the fields are numbers and text
		return err.Error()
	}
	return string(line)
}

func readFaults(path string) ([]fakegcs.Fault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.WithKind(err, exit.ErrSource)
	}
	defer f.Close()
	plan, err := fakegcs.ParseFaults(f)
	if err != nil {
		return nil, exit.Usagef("%s: %w", path, err)
	}
	return plan, nil
}

// serveEmulator serves until ctx ends.
func serveEmulator(ctx context.Context, std stdio, f emulatorFlags, opts fakegcs.Options) error {
	ln, err := listen(f.addr)
	if err != nil {
		return err
	}
	defer ln.Close()
	e, err := newEmulated(opts)
	if err != nil {
		return err
	}
	files := &emulatorFiles{dir: f.dir}
	defer files.remove()
	address := reachable(ln.Addr(), f.addr)
	url := "http://" + address
	if f.tls {
		url = "https://" + address
		ca, err := e.secure(files, f.http2, address)
		if err != nil {
			return errors.Join(err, e.close())
		}
		if _, err := fmt.Fprintf(std.err, "clients trust it by SSL_CERT_FILE=%s\n", process.Quote(ca)); err != nil {
			return errors.Join(fmt.Errorf("standard error: %w", err), e.close())
		}
	}
	if f.requireToken {
		path, err := files.write("credentials.json", fakegcs.NewCredentials(url), 0o600)
		if err != nil {
			return errors.Join(err, e.close())
		}
		// STORAGE_EMULATOR_HOST tells clients to send no credentials.
		if _, err := fmt.Fprintf(std.err, "clients get tokens by GOOGLE_APPLICATION_CREDENTIALS=%s, with --endpoint=%s instead of STORAGE_EMULATOR_HOST\n", process.Quote(path), url); err != nil {
			return errors.Join(fmt.Errorf("standard error: %w", err), e.close())
		}
	}
	failed := e.serve(ln)
	if _, err := fmt.Fprintf(std.out, "export STORAGE_EMULATOR_HOST=%s\n", url); err != nil {
		return errors.Join(fmt.Errorf("standard output: %w", err), e.close())
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, e.close())
}

// listen listens on address. For an IPv4 address it listens on IPv4 only. For
// 0.0.0.0, package net would listen on IPv6 too, and report the IPv6 address.
func listen(address string) (net.Listener, error) {
	network := "tcp"
	host, _, err := net.SplitHostPort(address)
	if ip, parseErr := netip.ParseAddr(host); err == nil && parseErr == nil && ip.Is4() {
		network = "tcp4"
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return ln, nil
}

// reachable returns an address that a client on this machine can use, if the listener
// listens on all addresses. It is an IPv6 address only if the user gave one.
func reachable(addr net.Addr, asked string) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	loopback := "127.0.0.1"
	if host, _, err := net.SplitHostPort(asked); err == nil && strings.Contains(host, ":") {
		loopback = "::1"
	}
	return net.JoinHostPort(loopback, strconv.Itoa(tcp.Port))
}

// emulated is an emulator and its HTTP server.
type emulated struct {
	server *fakegcs.Server
	http   *http.Server
}

// newEmulated opens an emulator. It fails if another process uses the directory.
func newEmulated(opts fakegcs.Options) (*emulated, error) {
	server, err := fakegcs.New(&opts)
	if err != nil {
		if errors.Is(err, fakegcs.ErrInUse) {
			return nil, exit.WithKind(fmt.Errorf("emulator: another process uses %s; wait for it, or give another directory", opts.Dir), state.ErrInUse)
		}
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return &emulated{server, &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}}, nil
}

// secure makes e serve TLS. It returns the path of the authority's certificate.
func (e *emulated) secure(files *emulatorFiles, http2 bool, address string) (ca string, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	cert, pem, err := fakegcs.NewCertificate("localhost", "127.0.0.1", "::1", host)
	if err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	if ca, err = files.write("ca.pem", pem, 0o644); err != nil {
		return "", err
	}
	e.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	e.http.Protocols = new(http.Protocols)
	e.http.Protocols.SetHTTP1(true)
	e.http.Protocols.SetHTTP2(http2)
	return ca, nil
}

// serve serves on ln in the background. The channel receives the error if the server
// fails.
func (e *emulated) serve(ln net.Listener) <-chan error {
	failed := make(chan error, 1)
	go func() {
		serve := e.http.Serve
		if e.http.TLSConfig != nil {
			serve = func(ln net.Listener) error { return e.http.ServeTLS(ln, "", "") }
		}
		if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("emulator: %w", err)
		}
	}()
	return failed
}

// close ends active requests like broken connections: the server keeps the bytes that
// it has received.
func (e *emulated) close() error {
	return errors.Join(e.server.Close(), e.http.Close())
}
