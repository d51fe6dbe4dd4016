package fakegcs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"gcsup/fakegcs/internal/ops"
	"gcsup/fakegcs/internal/writerate"
)

var errClosed = errors.New("fakegcs: the server is closed")

// Reset returns the server to its state after [New]: with the buckets, objects and
// faults of the options, no uploads, an empty request log, and the clock of the machine.
// Access tokens stay valid. Requests that run are ended without a reply, and those that
// arrive meanwhile wait. With Dir, what the directory contains is deleted.
//
// It is for tests that share a server. It fails if the server is closed, or the directory
// cannot be changed.
func (s *Server) Reset() error {
	s.life.Lock()
	defer s.life.Unlock()
	if !s.running.pause() {
		return errClosed
	}
	defer s.running.resume()
	s.cancel() // of requests that a fault stalls
	s.running.wg.Wait()
	s.ctx, s.cancel = context.WithCancel(context.Background())

	s.sessions.clear()
	s.multiparts.clear()
	err := s.store.clear()
	s.ahead.Store(int64(s.opts.ClockSkew))
	s.plan.Clear()
	s.plan.Add(s.opts.Faults)
	s.projects.clear()
	s.retry.clear()
	s.replies.clear()
	s.requests.clear()
	if s.writes != nil {
		s.writes = writerate.New(s.opts.BucketRate, s.opts.splitAfter())
	}
	if err == nil {
		err = s.store.seed()
	}
	if err != nil {
		return fmt.Errorf("fakegcs: reset: %w", err)
	}
	return nil
}

// resets reports whether q is the request that resets the server. It is not one of the
// running requests, which a reset waits for.
func (q *request) resets() bool {
	return q.op == ops.Control && q.Method == http.MethodPost && q.URL.Path == controlPrefix+"reset"
}

func (s *Server) serveReset(w http.ResponseWriter) {
	err := s.Reset()
	s.date(w.Header())
	switch {
	case errors.Is(err, errClosed):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// clear deletes all buckets and objects.
func (s *store) clear() error {
	defer s.claimBuckets()()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []error
	for name, b := range s.buckets {
		failed = append(failed, s.disk.RemoveBucket(name))
		for _, g := range b.objects {
			if g.live != nil {
				g.live.blob.Release()
			}
			for _, v := range slices.Concat(g.old, g.soft) {
				v.blob.Release()
			}
		}
		delete(s.buckets, name)
	}
	return errors.Join(failed...)
}

// clear ends all sessions.
func (s *sessions) clear() {
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.byID))
	s.mu.Unlock()
	for _, u := range list {
		s.forget(u)
	}
}

// clear ends all multipart uploads.
func (m *multiparts) clear() {
	m.mu.Lock()
	list := slices.Collect(maps.Values(m.byID))
	m.mu.Unlock()
	for _, p := range list {
		p.mu.Lock()
		m.removeRecord(p)
		m.end(p, nil)
		p.mu.Unlock()
	}
	m.mu.Lock()
	m.ended = nil
	m.mu.Unlock()
}

func (t *retryTests) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = nil
}

func (f *firstReplies) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept, f.order = nil, nil
}

func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.stats = nil, Stats{}
}
