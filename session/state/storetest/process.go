package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
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
	features, err := r.do(t.Context(), call{Op: opFeatures})
	if err != nil {
		t.Fatalf("start a process with the Store in %s: %v", path, err)
	}
	p := Process{Store: r, Kill: kill}
	switch {
	case features.LockChecks && features.Quarantine:
		p.Store = struct {
			*remote
			lockChecker
			quarantine
		}{r, lockChecker{r}, quarantine{r}}
	case features.LockChecks:
		p.Store = struct {
			*remote
			lockChecker
		}{r, lockChecker{r}}
	case features.Quarantine:
		p.Store = struct {
			*remote
			quarantine
		}{r, quarantine{r}}
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
	if rerr := service.RegisterName("Store", &server{store: store, failed: err, locks: make(map[int]func())}); rerr != nil {
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

// The methods of a Store.
const (
	opFeatures = iota
	opLoad
	opSave
	opList
	opDelete
	opLock
	opUnlock
	opLocked
	opSetAside
)

// call describes a call of a Store in another process.
type call struct {
	Op      int
	ID      string
	Token   []byte // the result of state.Encode
	Lock    int
	Timeout time.Duration // until the context ends; zero or negative if it is done
}

// answer is the result of a call.
type answer struct {
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

// kinds are the errors that callers of a Store distinguish.
var kinds = []error{
	state.ErrNoToken, state.ErrCorruptToken, state.ErrTokenVersion, state.ErrInUse, state.ErrInsecurePermissions,
	context.Canceled, context.DeadlineExceeded,
}

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
	c.Timeout = time.Hour
	if deadline, ok := ctx.Deadline(); ok {
		c.Timeout = time.Until(deadline)
	}
	if ctx.Err() != nil {
		c.Timeout = 0
	}
	request, err := json.Marshal(c)
	if err != nil {
		return &answer{}, err
	}
	var reply []byte
	sent := r.client.Go("Store.Do", request, &reply, make(chan *rpc.Call, 1))
	if c.Timeout > 0 {
		select {
		case <-sent.Done:
		case <-ctx.Done():
			return &answer{}, context.Cause(ctx)
		}
	} else {
		<-sent.Done
	}
	a := new(answer)
	if err = sent.Error; err == nil {
		err = json.Unmarshal(reply, a)
	}
	if err != nil {
		return a, fmt.Errorf("the process of the Store: %w", err)
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
	a, err := r.do(ctx, call{Op: opLoad, ID: id})
	if err != nil {
		return nil, err
	}
	return state.Decode(a.Token)
}

func (r *remote) Save(ctx context.Context, t *state.Token) error {
	data, err := state.Encode(t)
	if err == nil {
		_, err = r.do(ctx, call{Op: opSave, Token: data})
	}
	return err
}

func (r *remote) List(ctx context.Context) ([]string, error) {
	a, err := r.do(ctx, call{Op: opList})
	return a.IDs, err
}

func (r *remote) Delete(ctx context.Context, id string) error {
	_, err := r.do(ctx, call{Op: opDelete, ID: id})
	return err
}

func (r *remote) Lock(ctx context.Context, id string) (unlock func(), err error) {
	a, err := r.do(ctx, call{Op: opLock, ID: id})
	if err != nil {
		return nil, err
	}
	return func() { _, _ = r.do(context.Background(), call{Op: opUnlock, Lock: a.Lock}) }, nil
}

type lockChecker struct{ remote *remote }

func (l lockChecker) Locked(ctx context.Context, id string) (bool, error) {
	a, err := l.remote.do(ctx, call{Op: opLocked, ID: id})
	return a.Locked, err
}

type quarantine struct{ remote *remote }

func (q quarantine) SetAside(ctx context.Context, id string) error {
	_, err := q.remote.do(ctx, call{Op: opSetAside, ID: id})
	return err
}

// server answers the calls of a remote.
type server struct {
	store  state.Store
	failed error // the error of opening the Store

	mu    sync.Mutex
	locks map[int]func()
}

// Do makes one call. Package rpc needs arguments of exported types.
func (s *server) Do(request []byte, reply *[]byte) error {
	var c call
	if err := json.Unmarshal(request, &c); err != nil {
		return err
	}
	var a answer
	err := s.failed
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
		defer cancel()
		err = s.do(ctx, &c, &a)
	}
	if err != nil {
		a.Failed, a.Text = true, err.Error()
		for i, kind := range kinds {
			if errors.Is(err, kind) {
				a.Kinds = append(a.Kinds, i)
			}
		}
		a.Held, _ = errors.AsType[*state.HeldError](err)
	}
	*reply, err = json.Marshal(a)
	return err
}

func (s *server) do(ctx context.Context, c *call, a *answer) (err error) {
	switch c.Op {
	case opFeatures:
		_, a.LockChecks = s.store.(state.LockChecker)
		_, a.Quarantine = s.store.(state.Quarantine)
	case opLoad:
		var t *state.Token
		if t, err = s.store.Load(ctx, c.ID); err == nil {
			a.Token, err = state.Encode(t)
		}
	case opSave:
		var t *state.Token
		if t, err = state.Decode(c.Token); err == nil {
			err = s.store.Save(ctx, t)
		}
	case opList:
		a.IDs, err = s.store.List(ctx)
	case opDelete:
		err = s.store.Delete(ctx, c.ID)
	case opLock:
		var unlock func()
		if unlock, err = s.store.Lock(ctx, c.ID); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			a.Lock = len(s.locks)
			s.locks[a.Lock] = unlock
		}
	case opUnlock:
		s.mu.Lock()
		unlock := s.locks[c.Lock]
		s.mu.Unlock()
		unlock()
	case opLocked:
		a.Locked, err = s.store.(state.LockChecker).Locked(ctx, c.ID)
	case opSetAside:
		err = s.store.(state.Quarantine).SetAside(ctx, c.ID)
	}
	return err
}
