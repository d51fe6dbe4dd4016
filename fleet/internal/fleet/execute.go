package fleet

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// outcome is the outcome of the upload of one file of a task.
type outcome struct {
	file    File // with the size, time and generation of what was uploaded
	skipped bool
	changed bool // the file was uploaded although it is not as it was submitted
	err     error
}

// execution uploads the files of one delivered task.
type execution struct {
	w    *Worker
	task *Task

	refused error // see Worker.refuses

	// first is true for the first delivery of a task. In a later one, files may be finished:
	// their destinations are looked up before they are sent.
	first bool

	sent      atomic.Int64 // bytes of the current file that were handed to the network; of a group, 0
	committed atomic.Int64 // bytes of the current file that are durable; of a group, those of finished files

	replaced bool // objects have another generation than when they were submitted

	reads sourcefile.Reads // of the files
}

// skip returns which objects are left as they are. If the task replaces objects, those of another generation are
// perhaps the ones that another delivery has made.
func (x *execution) skip() upload.Skip {
	if x.task.Replace && !x.replaced {
		return upload.SkipNothing
	}
	return upload.SkipIdentical
}

// run uploads the files of the task, and returns an outcome for each file, except for those that
// were not tried before ctx ended.
func (x *execution) run(ctx context.Context) []outcome {
	ctx = sourcefile.WithReads(ctx, &x.reads)
	var todo []File
	var all []outcome
	for _, f := range x.task.Files {
		err := x.refused
		if err == nil {
			err = x.limits(f.Path)
		}
		if err != nil {
			all = append(all, outcome{file: f, err: err})
		} else {
			todo = append(todo, f)
		}
	}
	for pass := 0; len(todo) > 0; pass++ {
		outcomes, again := x.pass(ctx, todo, pass)
		all = append(all, outcomes...)
		if todo = again; ctx.Err() != nil {
			break
		}
	}
	return all
}

// pass uploads files. The first pass also returns the files to try again. For some,
// an object appeared since the submit, which another worker may have made. Others
// have a saved upload from an earlier submit, with other settings or of an earlier
// state of the file.
func (x *execution) pass(ctx context.Context, files []File, pass int) (done []outcome, again []File) {
	of := make(map[string]File, len(files))
	for _, f := range files {
		of[f.Object] = f
	}
	send := x.group
	if len(x.task.Files) == 1 {
		send = x.single
	}
	for res, err := range send(ctx, files, pass) {
		f := of[res.Spec.Object]
		if pass == 0 && (errors.Is(err, state.ErrOptionsDiffer) || errors.Is(err, session.ErrPrecondition) || errors.Is(err, session.ErrSourceChanged)) {
			again = append(again, f)
			x.replaced = x.replaced || errors.Is(err, session.ErrPrecondition)
			continue
		}
		changed := false
		if err == nil {
			queued := f
			f = uploaded(f, res)
			changed = !queued.same(f.Size, f.ModTimeNS)
			if len(x.task.Files) > 1 {
				x.committed.Add(f.Size)
			}
		}
		done = append(done, outcome{file: f, skipped: res.Skipped != upload.SkipNothing, changed: changed, err: err})
	}
	return done, again
}

// group uploads small files, which are not saved.
func (x *execution) group(ctx context.Context, files []File, pass int) iter.Seq2[*upload.Result, error] {
	opts := &upload.BatchOptions{Skip: x.skip()}
	blind := x.first && pass == 0
	if !blind && len(files) > 8 {
		s := x.task.Settings
		opts.Listing = &upload.Listing{Bucket: s.Bucket, Prefix: commonPrefix(files), UserProject: s.UserProject}
	}
	u, err := x.w.uploaders.small.With(upload.CallOptions{Accept: x.accept(files)})
	if err != nil {
		return func(yield func(*upload.Result, error) bool) { yield(&upload.Result{}, err) }
	}
	return u.Files(ctx, x.jobs(files, blind), opts)
}

// single uploads the only file of the task. It looks up the destination even in a first
// delivery: after JetStream was wiped and the tree was submitted again, another worker may
// still work on the task. Looking up one object costs less than sending a large file.
func (x *execution) single(ctx context.Context, files []File, pass int) iter.Seq2[*upload.Result, error] {
	u := x.w.uploaders.large
	if pass > 0 {
		u = x.w.uploaders.restart
	}
	f := files[0]
	call := upload.CallOptions{Observer: x.observe, Skip: x.skip(), SourceName: f.Path, Accept: x.accept(files)}
	if x.w.opts.TrustTimes {
		call.SourceVersion = x.sourceVersion(f.Path)
	}
	return func(yield func(*upload.Result, error) bool) {
		u, err := u.With(call)
		if err != nil {
			yield(&upload.Result{Path: f.Path, Spec: x.spec(f)}, err)
			return
		}
		yield(u.File(ctx, f.Path, x.spec(f)))
	}
}

// accept returns a function that refuses those of files that are not as they were submitted, or nil if the
// worker accepts changed ones.
func (x *execution) accept(files []File) func(path string, info fs.FileInfo) error {
	if x.w.opts.AcceptChanged {
		return nil
	}
	submitted := make(map[string]File, len(files))
	for _, f := range files {
		submitted[f.Path] = f
	}
	return func(path string, info fs.FileInfo) error {
		if f, ok := submitted[path]; ok {
			return stale(f, info)
		}
		return nil
	}
}

// uploaded returns f with the size and time of the uploaded content and the
// generation of its object.
func uploaded(f File, res *upload.Result) File {
	if res.Object != nil {
		f.Generation = res.Object.Generation
	}
	if res.Source.ModTimeNS != 0 {
		f.Size, f.ModTimeNS = res.Source.Size, res.Source.ModTimeNS
	}
	return f
}

// jobs yields the jobs of files. If blind is set, a file whose object did not exist
// at the submit is sent without looking it up. The precondition then decides.
func (x *execution) jobs(files []File, blind bool) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for _, f := range files {
			if !yield(upload.Job{Path: f.Path, Spec: x.spec(f), Size: f.Size, Listed: blind && f.Generation == 0}) {
				return
			}
		}
	}
}

// spec returns the Spec of the object of a file.
func (x *execution) spec(f File) upload.Spec {
	spec := x.task.spec(f)
	spec.DefaultContentType = x.w.contentType(f)
	return spec
}

// observe records the progress of a task with one file.
func (x *execution) observe(e upload.Event) {
	x.w.observe(e)
	if e.Kind != upload.LeaseHeld {
		x.committed.Store(e.Committed)
		x.sent.Store(e.Arrived)
	}
}

// commonPrefix returns the longest common prefix of the objects of files, which are sorted.
func commonPrefix(files []File) string {
	first, last := files[0].Object, files[len(files)-1].Object
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return strings.ToValidUTF8(first[:n], "")
}

// sourceVersion identifies the content of a file by its size and modification time
// only, because its inode and change time may differ between machines. If the file
// does not exist, it returns "", and the upload reports the error.
func (x *execution) sourceVersion(path string) string {
	defer x.reads.Begin(path)()
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(info.Size(), 10) + "-" + strconv.FormatInt(info.ModTime().UnixNano(), 10)
}
