package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// natsFlags select the queue: on NATS servers, or in a directory of this machine.
type natsFlags struct {
	url, creds, ca, cert, key string
	dir, fleet                string
	replicas                  int
	ackWait                   time.Duration
	creates                   bool   // the command may create the queue
	works                     bool   // the command is a worker: others can use its server
	state                     string // of that worker
	keep                      time.Duration
	needs                     keys   // with --nats
	signKey, verifyKeys       string // files

	log *slog.Logger // of a server in this process; nil prints its warnings as messages
}

func (f *natsFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "nats", "", "`URL` of the NATS servers, such as tls://nats-1:4222,tls://nats-2:4222 (default: a queue in --fleet-dir)")
	fs.StringVar(&f.creds, "nats-creds", "", "credentials `FILE` for NATS")
	fs.StringVar(&f.ca, "nats-ca", "", "`FILE` with the certificate authorities of the NATS servers")
	fs.StringVar(&f.cert, "nats-cert", "", "`FILE` with the certificate of this client for NATS")
	fs.StringVar(&f.key, "nats-key", "", "`FILE` with the key of that certificate")
	fs.StringVar(&f.fleet, "fleet", "default", "`NAME` of the fleet, so that several can share a server")
	fs.StringVar(&f.dir, "fleet-dir", "", "keep the queue in `DIR`, without --nats (default: \"fleet\" in the state directory)")
	if f.needs == toSign {
		fs.StringVar(&f.signKey, "sign-key", "", "`FILE` with the ed25519 key that signs what this command puts into the queue, in PEM (required with --nats)")
	}
	fs.StringVar(&f.verifyKeys, "verify-key", "", "`FILE` with the public keys of those who sign, in PEM: what others put into the queue is refused"+map[keys]string{toVerify: " (required with --nats)"}[f.needs])
	cmdline.Common(fs, "nats", "nats-ca", "nats-creds", "fleet")
}

// addCreation adds the flags of commands that may create the queue.
func (f *natsFlags) addCreation(fs *pflag.FlagSet) {
	f.creates = true
	fs.DurationVar(&f.ackWait, "ack-wait", 0, fmt.Sprintf("other workers get the uploads of a worker that is silent for `DURATION`, %v to %v; it can be changed only while there are no workers (default: that of the queue, or %v)", fleet.MinAckWait, fleet.MaxAckWait, fleet.DefaultAckWait))
	fs.IntVar(&f.replicas, "nats-replicas", 0, "`N` servers of a cluster store the queue, fixed when it is created (default: that of the queue; 3 for a new one on a cluster of three or more servers)")
}

// link is an open queue and its connection.
type link struct {
	*fleet.Queue
	conn     *nats.Conn
	refused  *atomic.Pointer[error] // the last request that the permissions of this client do not allow
	endpoint string                 // of the emulator of gcsup-fleet up; "" if there is none
	state    string                 // --state of gcsup-fleet up; "" if there is none
	failed   <-chan error           // gets an error if the server in this process fails; nil if there is none
	dir      string                 // whose server is in another process; "" if there is none
	close    func()
}

// abandoned reports whether the queue is in a directory that no other process serves.
func (l *link) abandoned() bool {
	if l.failed != nil {
		return true
	}
	if l.dir == "" || l.conn.IsConnected() {
		return false
	}
	lock, err := lockDir(l.dir)
	if err == nil {
		_ = lock.Unlock()
	}
	return err == nil
}

// healthy returns an error if the connection to NATS is lost.
func (l *link) healthy() error {
	if !l.conn.IsConnected() {
		return errors.New("NATS cannot be reached")
	}
	return nil
}

// explain returns err, with the name of what did not answer, or why the servers refused a request.
// They do not reply to such a request, so that err is a timeout.
func (l *link) explain(err error) error {
	if !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders) {
		return err
	}
	if refused := l.refused.Load(); refused != nil {
		return *refused
	}
	return fmt.Errorf("NATS did not answer: %w", err)
}

// openPolicy is how long open waits before each retry. Tests change it.
var openPolicy backoff.Policy

// openFor bounds open with --nats. Tests change it.
var openFor = 35 * time.Second

// open opens the queue: on the servers of --nats, on that of a gcsup-fleet up on this
// machine, or on one inside this process, which opens no port. It retries errors that
// may disappear when a server has started or elected a leader.
func (f *natsFlags) open(ctx context.Context, std stdio) (*link, error) {
	caller := ctx
	if f.url != "" {
		// Without a deadline, each request has the default one of 5 s, and can be repeated.
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(openFor, cancel).Stop()
	}
	queue, err := f.queueOptions()
	if err != nil {
		return nil, err
	}
	try := func(ctx context.Context) (*link, error) { return f.tryOpen(ctx, queue, std) }
	l, err := backoff.Retry(ctx, openPolicy, try, &backoff.Options{
		Classify: func(err error) backoff.Verdict {
			if exitCodeOf(err) == exit.Temporary && !errors.Is(err, errLocked) {
				return backoff.Transient
			}
			return backoff.Classify(err)
		},
		Observe: func(a backoff.Attempt) {
			if a.Wait > 0 {
				std.message("%v; next attempt in %v", a.Err, a.Wait.Round(100*time.Millisecond))
			}
		},
	})
	switch {
	case err != nil && caller.Err() != nil:
		return nil, context.Cause(caller)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("NATS has not answered for %v: %w", openFor, context.DeadlineExceeded)
	}
	if failed, ok := errors.AsType[*backoff.Error](err); ok {
		return nil, failed.Err
	}
	return l, err
}

// tryOpen is one try of open.
func (f *natsFlags) tryOpen(ctx context.Context, queue fleet.QueueOptions, std stdio) (*link, error) {
	l := &link{close: func() {}, refused: new(atomic.Pointer[error])}
	var err error
	if f.url != "" {
		l.conn, err = f.dial(f.url, "", l.refused)
	} else {
		err = f.openDir(ctx, l, std)
	}
	if err != nil {
		return nil, err
	}
	stop := l.close
	l.close = func() {
		l.conn.Close()
		stop()
	}
	l.Queue, err = fleet.OpenQueue(ctx, l.conn, queue)
	if err != nil {
		l.close()
		return nil, l.explain(err)
	}
	return l, nil
}

// queueOptions checks the flags, and reads the files with keys.
func (f *natsFlags) queueOptions() (o fleet.QueueOptions, err error) {
	if (f.cert == "") != (f.key == "") {
		return o, exit.Usagef("--nats-cert and --nats-key need each other")
	}
	o = fleet.QueueOptions{Fleet: f.fleet, AckWait: f.ackWait, Replicas: f.replicas, Keep: f.keep, MustExist: !f.creates}
	if f.verifyKeys != "" {
		if o.VerifyKeys, err = readKeys[ed25519.PublicKey]("--verify-key", f.verifyKeys, x509.ParsePKIXPublicKey); err != nil {
			return o, err
		}
	}
	if f.signKey != "" {
		if o.SignKey, err = readSignKey(f.signKey); err != nil {
			return o, err
		}
		o.VerifyKeys = append(o.VerifyKeys, o.SignKey.Public().(ed25519.PublicKey))
	}
	switch {
	case f.url == "":
	case f.needs == toSign && o.SignKey == nil:
		return o, exit.Usagef("with --nats, workers accept only what is signed: give the key with --sign-key")
	case f.needs == toVerify && len(o.VerifyKeys) == 0:
		return o, exit.Usagef("with --nats, give the public keys of those who may submit with --verify-key")
	}
	return o, nil
}

// dial connects to NATS servers. token may be "". refused gets errors about permissions.
func (f *natsFlags) dial(urls, token string, refused *atomic.Pointer[error]) (*nats.Conn, error) {
	servers, err := withoutPasswords(urls)
	if err != nil {
		return nil, err
	}
	opts := []nats.Option{nats.Name("gcsup-fleet"), nats.MaxReconnects(-1), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			refused.Store(&err)
		}
	})}
	if token != "" {
		opts = append(opts, nats.Token(token))
	}
	if f.creds != "" {
		opts = append(opts, nats.UserCredentials(f.creds))
	}
	if f.ca != "" {
		opts = append(opts, nats.RootCAs(f.ca))
	}
	if f.cert != "" {
		opts = append(opts, nats.ClientCert(f.cert, f.key))
	}
	nc, err := nats.Connect(urls, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", servers, err)
	}
	return nc, nil
}

// withoutPasswords returns the URLs of servers for messages, without users and passwords.
func withoutPasswords(urls string) (string, error) {
	var servers []string
	for text := range strings.SplitSeq(urls, ",") {
		text = strings.TrimSpace(text)
		bare := !strings.Contains(text, "://")
		if bare {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || bare && u.User != nil {
			// The error of url.Parse would show the password. Text that looks like a path, or
			// follows a comma, may be a part of a password that is not escaped.
			return "", exit.Usagef("--nats: want URLs such as tls://nats-1:4222,tls://nats-2:4222")
		}
		servers = append(servers, u.Scheme+"://"+u.Host)
	}
	return strings.Join(servers, ","), nil
}

// openDir connects to the server that uses the directory, or starts one in this process.
func (f *natsFlags) openDir(ctx context.Context, l *link, std stdio) error {
	dir, err := f.directory()
	if err != nil {
		return err
	}
	lock, at, err := lockOrAddress(ctx, dir)
	if err != nil {
		return err
	}
	if lock == nil {
		if at.OfWork && f.works {
			return exit.WithKind(fmt.Errorf("another gcsup-fleet work has the queue in %s: for several workers on this machine, use gcsup-fleet up", dir), errLocked)
		}
		l.endpoint, l.state, l.dir = at.Endpoint, at.State, dir
		l.conn, err = f.dial(at.URL, at.Token, l.refused)
		return err
	}
	a, port := address{OfWork: true, State: f.state}, 0
	if f.works {
		a.Token, port = newToken(), -1
	}
	server, err := startServer(dir, port, a.Token, f.log, std)
	if err != nil {
		_ = lock.Unlock()
		return err
	}
	l.failed = server.Failed()
	l.close = func() {
		server.Close()
		_ = lock.Unlock()
	}
	l.conn, err = server.Connect()
	if err == nil && f.creates {
		err = fleet.Redeliver(context.Background(), l.conn) // no other process has a task
	}
	if err == nil && f.works {
		a.URL = server.URL()
		var remove func()
		if remove, err = writeAddress(dir, a); err == nil {
			stop := l.close
			l.close = func() {
				remove()
				stop()
			}
		}
	}
	if err != nil {
		l.close()
	}
	return err
}

// startServer starts the server of the queue in a directory that this process has locked. A port of 0 opens
// none, and -1 chooses one.
func startServer(dir string, port int, token string, log *slog.Logger, std stdio) (*natsserver.Server, error) {
	_ = os.Remove(filepath.Join(dir, addressFile)) // left by a process that was killed
	return natsserver.Start(natsserver.Options{
		Dir: filepath.Join(dir, "nats"), Port: port, Token: token, Report: reportTo(log, std),
	})
}

// reportTo returns a function for natsserver.Options.Report. It writes to log, or prints messages if that
// is nil.
func reportTo(log *slog.Logger, std stdio) func(slog.Level, string) {
	if log == nil {
		return func(_ slog.Level, text string) { std.message("%s", text) }
	}
	return func(level slog.Level, text string) { log.Log(context.Background(), level, text) }
}

// untilFailed returns a context that also ends when failed gets an error, which is then its cause.
func untilFailed(ctx context.Context, failed <-chan error) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-failed:
			end(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

// directory returns the directory of the queue, and creates it if necessary.
func (f *natsFlags) directory() (string, error) {
	dir := f.dir
	if dir == "" {
		state, err := process.StateDir()
		if err != nil {
			return "", exit.WithKind(fmt.Errorf("no default for --fleet-dir: %w", err), exit.ErrConfig)
		}
		dir = filepath.Join(state, "fleet")
	}
	return dir, os.MkdirAll(dir, 0o700)
}

var errLocked = errors.New("another process has the queue")

// lockDir locks a directory with a queue. If another process has locked it, the error is errLocked.
func lockDir(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	ok, err := lock.TryLock()
	if err == nil && !ok {
		err = errLocked
	}
	return lock, err
}

// addressWait is how long lockOrAddress waits for a process that has the lock and no server yet, or no
// longer.
const addressWait = 3 * time.Second

// lockOrAddress locks a directory with a queue. If another process has locked it, the lock is nil, and the
// address is that of its server.
func lockOrAddress(ctx context.Context, dir string) (*flock.Flock, address, error) {
	for end := time.Now().Add(addressWait); ; {
		lock, err := lockDir(dir)
		if err == nil || !errors.Is(err, errLocked) {
			return lock, address{}, err
		}
		at, err := readAddress(dir)
		if err == nil || !errors.Is(err, errLocked) || time.Now().After(end) {
			return nil, at, err
		}
		select {
		case <-ctx.Done():
			return nil, at, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// address has the URL of the server of gcsup-fleet up or work and its token, which is secret.
type address struct {
	URL      string `json:"url"`
	Token    string `json:"token"`
	Endpoint string `json:"endpoint,omitempty"` // of the emulator
	State    string `json:"state,omitempty"`    // --state of the workers
	OfWork   bool   `json:"of_work,omitempty"`  // the server is that of a gcsup-fleet work, and ends with it
}

// newToken returns a random token.
func newToken() string {
	var token [32]byte
	_, _ = rand.Read(token[:])
	return hex.EncodeToString(token[:])
}

// addressFile is the file with the address, which only the user can read.
const addressFile = "server.json"

// readAddress reads the address of the server that uses a directory.
func readAddress(dir string) (address, error) {
	var a address
	data, err := os.ReadFile(filepath.Join(dir, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a, exit.WithKind(fmt.Errorf("another command uses the queue in %s and opens no port: wait for it, or use gcsup-fleet up", dir), errLocked)
	}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("%s: %w", filepath.Join(dir, addressFile), err)
	}
	return a, nil
}

// writeAddress writes the address file, and returns a function that removes it.
func writeAddress(dir string, a address) (remove func(), err error) {
	data, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, addressFile)
	return func() { _ = os.Remove(path) }, process.ReplaceFile(path, data)
}
