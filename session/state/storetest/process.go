package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/session/state"
)

// placeEnv has the path of the place in the environment of a process of Start.
const placeEnv = "STORETEST_PLACE"

// Start starts the test binary as another process, which opens the Store at path. Its
// Kill is SIGKILL, or the equivalent of the system. The binary must call [Serve]. The
// Store must not be a [state.Leaser].
func Start(t testing.TB, path string) Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), placeEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	client := rpc.NewClient(pipes{out, in})
	t.Cleanup(func() {
		_ = client.Close()
		kill()
	})
	r := &remote{client}
	has, err := r.do(t.Context(), call{Method: "features"})
	if err != nil {
		t.Fatalf("start a process with the Store in %s: %v", path, err)
	}
	p := Process{Store: r, Kill: kill}
	switch {
	case !has.LockChecks && !has.Quarantine:
		p.Store = struct{ state.Store }{r}
	case !has.LockChecks:
		p.Store = struct {
			state.Store
			state.Quarantine
		}{r, r}
	case !has.Quarantine:
		p.Store = struct {
			state.Store
			state.LockChecker
		}{r, r}
	}
	return p
}

// Serve runs a process of [Start], and exits. In the process of the test it does
// nothing. TestMain must call it first. open opens the Store at the path of Start.
func Serve(open func(path string) (state.Store, error)) {
	path, ok := os.LookupEnv(placeEnv)
	if !ok {
		return
	}
	store, err := open(path)
	if err == nil {
		if _, leaser := store.(state.Leaser); leaser {
			err = errors.New("a state.Leaser cannot be tested in another process: give its Process a Pause")
		}
	}
	service := rpc.NewServer()
	if rerr := service.RegisterName("Store", &server{store: store, failed: err}); rerr != nil {
		panic(rerr)
	}
	service.ServeConn(pipes{os.Stdin, os.Stdout}) // until the test ends
	os.Exit(0)
}

// pipes connects two processes.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.ReadCloser.Close(), p.WriteCloser.Close()) }

// call describes a call of a Store in another process, and answer its result. Package rpc
// needs types that are exported or have no name.
type (
	call = struct {
		Method, ID string
		Token      []byte // the result of state.Encode
		Lock       int
		Timeout    time.Duration // until the context ends; 0 if it is done
	}
	answer = struct {
		Token                  []byte
		IDs                    []string
		Lock                   int
		Locked                 bool
		LockChecks, Quarantine bool // the Store has these features

		Failed bool
		Text   string           // of the error
		Kinds  []int            // the indexes in kinds of the errors that it wraps
		Held   *state.HeldError // that it wraps; nil if it wraps none
	}
)

// kinds are the errors that callers of a Store distinguish.
var kinds = slices.Concat(meanings, []error{state.ErrInsecurePermissions, context.Canceled, context.DeadlineExceeded})

// remoteError is the error of a Store in another process.
type remoteError struct {
	text  string
	kinds []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.kinds }

// remote is a Store in another process.
type remote struct{ client *rpc.Client }

// do makes a call. It returns when ctx ends, even if the call is still under way.
func (r *remote) do(ctx context.Context, c call) (*answer, error) {
	deadline, ok := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		ctx = context.WithoutCancel(ctx) // the other process returns the error
	case ok:
		c.Timeout = time.Until(deadline)
	default:
		c.Timeout = time.Hour
	}
	a := new(answer)
	sent := r.client.Go("Store.Do", c, a, make(chan *rpc.Call, 1))
	select {
	case <-sent.Done:
	case <-ctx.Done():
		return new(answer), context.Cause(ctx)
	}
	if sent.Error != nil {
		return a, fmt.Errorf("the process of the Store: %w", sent.Error)
	}
	if !a.Failed {
		return a, nil
	}
	e := &remoteError{text: a.Text}
	for _, i := range a.Kinds {
		e.kinds = append(e.kinds, kinds[i])
	}
	if a.Held != nil {
		e.kinds = append(e.kinds, a.Held)
	}
	return a, e
}

func (r *remote) Load(ctx context.Context, id string) (*state.Token, error) {
	a, err := r.do(ctx, call{Method: "Load", ID: id})
	if err != nil {
		return nil, err
	}
	return state.Decode(a.Token)
}

func (r *remote) Save(ctx context.Context, t *state.Token) error {
	data, err := state.Encode(t)
	if err == nil {
		_, err = r.do(ctx, call{Method: "Save", Token: data})
	}
	return err
}

func (r *remote) List(ctx context.Context) ([]string, error) {
	a, err := r.do(ctx, call{Method: "List"})
	return a.IDs, err
}

func (r *remote) Delete(ctx context.Context, id string) error {
	_, err := r.do(ctx, call{Method: "Delete", ID: id})
	return err
}

func (r *remote) Lock(ctx context.Context, id string) (unlock func(), err error) {
	a, err := r.do(ctx, call{Method: "Lock", ID: id})
	if err != nil {
		return nil, err
	}
	return func() { _, _ = r.do(context.Background(), call{Method: "unlock", Lock: a.Lock}) }, nil
}

func (r *remote) Locked(ctx context.Context, id string) (bool, error) {
	a, err := r.do(ctx, call{Method: "Locked", ID: id})
	return a.Locked, err
}

func (r *remote) SetAside(ctx context.Context, id string) error {
	_, err := r.do(ctx, call{Method: "SetAside", ID: id})
	return err
}

// server answers the calls of a remote.
type server struct {
	store  state.Store
	failed error // the error of opening the Store
	locks  sync.Map
	count  atomic.Int64
}

// Do makes one call.
func (s *server) Do(c call, a *answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	err := s.failed
	if err == nil {
		err = s.do(ctx, &c, a)
	}
	if err == nil {
		return nil
	}
	a.Failed, a.Text = true, err.Error()
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			a.Kinds = append(a.Kinds, i)
		}
	}
	a.Held, _ = errors.AsType[*state.HeldError](err)
	return nil
}

func (s *server) do(ctx context.Context, c *call, a *answer) (err error) {
	switch c.Method {
	case "features":
		_, a.LockChecks = s.store.(state.LockChecker)
		_, a.Quarantine = s.store.(state.Quarantine)
	case "Load":
		var t *state.Token
		if t, err = s.store.Load(ctx, c.ID); err == nil {
			a.Token, err = state.Encode(t)
		}
	case "Save":
		var t *state.Token
		if t, err = state.Decode(c.Token); err == nil {
			err = s.store.Save(ctx, t)
		}
	case "List":
		a.IDs, err = s.store.List(ctx)
	case "Delete":
		err = s.store.Delete(ctx, c.ID)
	case "Lock":
		var unlock func()
		if unlock, err = s.store.Lock(ctx, c.ID); err == nil {
			a.Lock = int(s.count.Add(1))
			s.locks.Store(a.Lock, unlock)
		}
	case "unlock":
		unlock, _ := s.locks.Load(c.Lock)
		unlock.(func())()
	case "Locked":
		a.Locked, err = s.store.(state.LockChecker).Locked(ctx, c.ID)
	case "SetAside":
		err = s.store.(state.Quarantine).SetAside(ctx, c.ID)
	}
	return err
}
