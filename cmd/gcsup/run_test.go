package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/session"
	"gcsup/upload"
)

// gate is a writer that blocks until it is opened.
type gate struct {
	opened chan struct{}
	mu     sync.Mutex
	text   strings.Builder
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.opened
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

// TestBlockedReaderHoldsUpNothing checks that uploads finish even if the output is
// not read, and that an interruption does not wait for a reader.
func TestBlockedReaderHoldsUpNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reports 100,000 events")
	}
	blocked := &gate{opened: make(chan struct{})}
	defer close(blocked.opened)
	r := newReporter(stdio{out: blocked, err: blocked}, outputFlags{json: true}, commandLine{given: &pflag.FlagSet{}})
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	var tasks []task
	for i := range 100 {
		tasks = append(tasks, task{source: fmt.Sprint(i), destination: "gs://bkt/o", do: func(context.Context) (*upload.Result, error) {
			for range 1000 {
				r.observe(upload.Event{Kind: upload.Waiting, Delay: time.Second, Cause: "503", Err: &session.Error{Status: 503}})
			}
			if i == 99 {
				close(finished)
				<-ctx.Done()
			}
			return &upload.Result{Object: &session.Object{}}, nil
		}})
	}
	done := make(chan error)
	go func() { done <- r.run(ctx, &connection{}, tasks) }()
	<-finished // or the test times out
	cancel()
	if err := <-done; err != nil && !errors.As(err, new(exit.Printed)) {
		t.Error(err)
	}
}

// TestResultsPrecedeTheSummary checks that the results are on standard output when the summary is
// printed: both may go to one file.
func TestResultsPrecedeTheSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, messages := &gate{opened: make(chan struct{})}, &gate{opened: make(chan struct{})}
		close(messages.opened)
		r := newReporter(stdio{out: slow, err: messages}, outputFlags{progress: progressAuto}, commandLine{given: &pflag.FlagSet{}})
		upload := func(context.Context) (*upload.Result, error) {
			return &upload.Result{Object: &session.Object{}}, nil
		}
		done := make(chan error)
		go func() {
			done <- r.run(t.Context(), &connection{}, []task{{source: "a", destination: "gs://b/a", do: upload}, {source: "b", destination: "gs://b/b", do: upload}})
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		messages.mu.Lock()
		if early := messages.text.String(); early != "" {
			t.Errorf("printed before the results: %q", early)
		}
		messages.mu.Unlock()
		close(slow.opened)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !strings.Contains(messages.text.String(), "gcsup: 2 files: 2 uploaded") || strings.Count(slow.text.String(), "gs://b/") != 2 {
			t.Errorf("messages %q, results %q", messages.text.String(), slow.text.String())
		}
	})
}
