package upload_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/upload"
)

// spoolSimulation is what a seed has in addition to the others whose stream is kept in a spool, and sent in parts from
// there. A process resumes what an earlier one left, if its input had ended.
type spoolSimulation struct {
	w       *world
	rnd     *rand.Rand
	limit   int64
	left    string // a copy of the spool at the moment of a crash
	damaged bool   // a byte on the disk has changed
	out     *spoolOutcome
}

// spoolOutcome counts what happened to streams in spools.
type spoolOutcome struct {
	InParts    int // completed in parts by the process that read them
	Resumed    int // completed by another process
	Incomplete int // ended because bytes were lost
	Damaged    int // bytes that changed on the disk
}

func (o *spoolOutcome) add(p spoolOutcome) {
	o.InParts += p.InParts
	o.Resumed += p.Resumed
	o.Incomplete += p.Incomplete
	o.Damaged += p.Damaged
}

// check fails if the seeds did not have every kind of end.
func (o *spoolOutcome) check(t *testing.T, seeds uint64) {
	t.Helper()
	if seeds >= 32 && o.InParts+o.Resumed == 0 || seeds >= 500 && (o.InParts == 0 || o.Resumed == 0 || o.Damaged == 0) {
		t.Errorf("not all kinds of spooled streams: %+v", *o)
	}
}

// newSpool returns what a seed adds.
func newSpool(seed uint64, out *spoolOutcome) *spoolSimulation {
	rnd := rand.New(rand.NewPCG(seed, 6))
	return &spoolSimulation{rnd: rnd, limit: 15*mib + rnd.Int64N(32*mib), out: out}
}

// size returns the size of a stream. Most have more than their first window.
func (s *spoolSimulation) size() int64 {
	return multipart.MinPart/2 + s.rnd.Int64N(4*multipart.MinPart)
}

// start prepares the directory of the spools.
func (s *spoolSimulation) start(w *world) {
	s.w, s.left = w, filepath.Join(w.state, "..", "left")
	w.spooling(s.limit)
}

// errUnread is the error of an input that cannot be read.
var errUnread = errors.New("the input cannot be read")

// unread returns a reader that fails after the bytes of r.
func unread(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(errUnread)) }

// input returns a reader of content that takes a while. It may fail.
func (s *spoolSimulation) input(content []byte) io.Reader {
	pause := time.Duration(s.rnd.Int64N(int64(100 * time.Millisecond)))
	if s.rnd.IntN(5) == 0 {
		return unread(&pausedReader{content[:s.rnd.IntN(len(content))], pause})
	}
	return &pausedReader{content, pause}
}

// pausedReader is a reader that pauses before each read.
type pausedReader struct {
	rest  []byte
	pause time.Duration
}

func (r *pausedReader) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// crash copies the spool, as a process leaves it that is killed now. The calls of that process remove files until they
// return.
func (s *spoolSimulation) crash() {
	synctest.Wait()
	if err := os.CopyFS(s.left, os.DirFS(s.w.spoolDir())); err != nil {
		s.w.t.Error(err)
	}
	_ = filepath.WalkDir(s.left, func(path string, e os.DirEntry, _ error) error {
		mode := os.FileMode(0o600)
		if e.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	})
}

// restore makes the spool what the process left, if it crashed. A stream that was not saved yet is removed, as the next one
// does after a week, unless its end is recorded.
func (s *spoolSimulation) restore() {
	dir := s.w.spoolDir()
	if _, err := os.Stat(s.left); err != nil {
		return
	}
	err := errors.Join(os.RemoveAll(dir), os.Rename(s.left, dir))
	ids, lerr := s.w.store.List(context.Background())
	entries, rerr := os.ReadDir(dir)
	if err := errors.Join(err, lerr, rerr); err != nil {
		s.w.t.Error(err)
	}
	for _, e := range entries {
		id, _ := strings.CutSuffix(e.Name(), ".lock")
		if _, err := os.Stat(filepath.Join(dir, id, "end.json")); err != nil && !slices.Contains(ids, id) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// damage changes a byte on the disk.
func (s *spoolSimulation) damage() {
	names, err := filepath.Glob(filepath.Join(s.w.spoolDir(), "*", "*.bytes"))
	if err != nil || len(names) == 0 {
		return
	}
	name := names[s.rnd.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		return
	}
	b[s.rnd.IntN(len(b))] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		s.w.t.Error(err)
	}
	s.damaged = true
	s.out.Damaged++
}

// upload resumes the stream whose input has ended, or uploads content if there is none.
func (s *spoolSimulation) upload(ctx context.Context, up *upload.Uploader, content []byte, spec upload.Spec) (*upload.Result, error) {
	for saved, err := range up.Saved(ctx) {
		if err != nil || saved.Incomplete || saved.ToRemove {
			continue
		}
		if s.rnd.IntN(5) == 0 {
			s.damage()
		}
		res, err := up.Resume(ctx, saved.ID)
		if err == nil {
			s.out.Resumed++
		}
		return res, err
	}
	s.damaged = false
	res, err := up.Reader(ctx, s.input(content), spec)
	if err == nil && res.Parts != nil {
		s.out.InParts++
	}
	return res, err
}

// ended reports whether an upload ended with err as it must if bytes of the stream were lost, or the object was made. The
// next process begins with the input.
func (s *spoolSimulation) ended(ctx context.Context, up *upload.Uploader, res *upload.Result, err error) bool {
	switch {
	case errors.Is(err, upload.ErrIncomplete):
		s.out.Incomplete++
		if !s.damaged && !errors.Is(err, session.ErrSessionLost) {
			s.w.t.Errorf("bytes were lost: %v", err)
		}
		_ = up.Cancel(ctx, res.ID)
	case errors.Is(err, fs.ErrNotExist): // the object was made, and the files removed
		for range up.Prune(ctx, nil) {
		}
	default:
		return false
	}
	return true
}

// wantNothingLeft checks that a stream whose input has ended can be completed, and that nothing else is left that Prune
// does not remove.
func (s *spoolSimulation) wantNothingLeft(ctx context.Context, up *upload.Uploader, done func(*upload.Result)) {
	for saved, err := range up.Saved(ctx) {
		if err != nil {
			s.w.t.Error(err)
		}
		if saved.Incomplete || saved.ToRemove {
			continue
		}
		res, err := up.Resume(ctx, saved.ID)
		switch {
		case err == nil:
			done(res)
		case !s.ended(ctx, up, res, err):
			s.w.t.Errorf("a stream whose input has ended is not resumed: %v", err)
		}
	}
	for pruned, err := range up.Prune(ctx, nil) {
		if err != nil || !pruned.Deleted {
			s.w.t.Errorf("prune: %+v, %v", pruned, err)
		}
	}
	s.w.wantSaved(0)
	s.w.wantNoParts()
	s.w.wantNoSpool()
}
