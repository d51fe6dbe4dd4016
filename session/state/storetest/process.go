package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"testing"

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
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
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
	return Process{Kill: kill, remote: (&remote{client}).do}
}

// Serve runs a process of [Start], and exits. In the process of the test it does
// nothing. TestMain must call it first. open opens the Store at the path of Start.
func Serve(open func(path string) (state.Store, error)) {
	path, ok := os.LookupEnv(placeEnv)
	if !ok {
		return
	}
	store, err := open(path)
	if _, leaser := store.(state.Leaser); leaser {
		err = errors.New("a state.Leaser cannot be tested in another process: give its Process a Pause")
	}
	service := rpc.NewServer()
	if rerr := service.RegisterName("Worker", &server{newWorker(store), err}); rerr != nil {
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

// reply is the answer of another process, or its error.
type reply = struct {
	Answer answer
	Failed bool
	Text   string           // of the error
	Kinds  []int            // the indexes in meanings of the errors that it wraps
	Held   *state.HeldError // that it wraps; nil if it wraps none
}

// server makes the calls of a remote.
type server struct {
	*worker
	failed error // the error of opening the Store
}

// Do makes one call.
func (s *server) Do(c call, r *reply) error {
	err := s.failed
	if err == nil {
		r.Answer, err = s.do(context.Background(), c)
	}
	if err == nil {
		return nil
	}
	r.Failed, r.Text = true, err.Error()
	for i, kind := range meanings {
		if errors.Is(err, kind) {
			r.Kinds = append(r.Kinds, i)
		}
	}
	r.Held, _ = errors.AsType[*state.HeldError](err)
	return nil
}

// remote is the worker of another process.
type remote struct{ client *rpc.Client }

// do makes a call. It returns when ctx ends, even if the call is still under way.
func (r *remote) do(ctx context.Context, c call) (answer, error) {
	if c.Done = ctx.Err() != nil; c.Done {
		ctx = context.WithoutCancel(ctx) // the other process returns the error
	}
	got := new(reply)
	sent := r.client.Go("Worker.Do", c, got, make(chan *rpc.Call, 1))
	select {
	case <-sent.Done:
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	switch {
	case sent.Error != nil:
		return answer{}, fmt.Errorf("the process of the Store: %w", sent.Error)
	case !got.Failed:
		return got.Answer, nil
	}
	e := &remoteError{text: got.Text}
	for _, i := range got.Kinds {
		e.kinds = append(e.kinds, meanings[i])
	}
	if got.Held != nil {
		e.kinds = append(e.kinds, got.Held)
	}
	return got.Answer, e
}

// remoteError is the error of a Store in another process.
type remoteError struct {
	text  string
	kinds []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.kinds }
