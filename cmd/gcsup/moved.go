package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/shell"
	"gcsup/internal/grace"
	"gcsup/internal/sourcefile"
	"gcsup/session/state"
	"gcsup/upload"
)

// isSource reports whether a file is the source with which a saved upload began, at whatever path. A
// rename changes the change time, and a mount may change the number of the device.
func isSource(t *state.Upload, file chunk.Identity) bool {
	return file.Inode != 0 && sourcefile.Compare(t.Source, file) != sourcefile.Different
}

// maxRenamed is how many entries of a directory are looked at to find a renamed file.
const maxRenamed = 10_000

// renamed returns the path of the source of t if it has another name in its directory, or "".
func renamed(t *state.Upload) string {
	dir, err := os.Open(filepath.Dir(t.SourcePath))
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxRenamed)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() != t.Source.Size {
			continue
		}
		path := filepath.Join(filepath.Dir(t.SourcePath), e.Name())
		if file, err := sourcefile.StatIdentity(path); err == nil && isSource(t, file) {
			return path
		}
	}
	return ""
}

// savedUploads returns the saved uploads that may continue, unless machines share them: then a source is that of
// another machine, and reading them takes requests.
func (x *explainer) savedUploads(ctx context.Context) (tokens []*state.Upload) {
	if x.saved == nil || x.saved.shared {
		return nil
	}
	ids, err := x.saved.List(ctx)
	if err != nil {
		return nil // a hint is not worth an error
	}
	for _, id := range ids {
		t, err := x.saved.Load(ctx, id)
		if err == nil && t.MovedTo == "" && (t.Parts == nil || !t.Parts.Over) {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// announceMoved prints how to continue the uploads of files that had another path when they were
// interrupted.
func (x *explainer) announceMoved(saved []*state.Upload, named []task) {
	byInode, own := map[uint64]*state.Upload{}, map[string]bool{}
	for _, t := range saved {
		if t.Endpoint == x.endpoint && t.SourcePath != "" {
			byInode[t.Source.Inode] = t
			own[t.SourcePath+"\x00"+t.Spec.URL()] = true
		}
	}
	if len(byInode) == 0 {
		return
	}
	for _, file := range named {
		abs := process.Absolute(file.source)
		identity, err := sourcefile.StatIdentity(abs)
		if err != nil || file.err != nil || own[abs+"\x00"+file.destination] {
			continue
		}
		t := byInode[identity.Inode]
		if t == nil || !isSource(t, identity) || exists(t.SourcePath) { // a hard link
			continue
		}
		x.console.Message("%s starts over: when its upload to %s was interrupted, it was %s, and %s are committed", file.source, t.Spec.URL(), t.SourcePath, committedText(t))
		x.console.Message("to continue that upload instead: %s", process.Block(x.resumeFrom(t.ID, abs)))
	}
}

// exists reports whether there is a file at path, or may be one.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// committedText returns how much of an upload is committed. The service may have more than was saved: a process that was
// killed had no reply yet.
func committedText(t *state.Upload) string {
	saved := upload.Describe(t)
	text := readable.Committed(saved.Committed, saved.Size)
	if saved.Committed != saved.Size {
		text = "at least " + text
	}
	return text
}

// resumeFrom returns the command that resumes an upload whose source is at path now, which is
// absolute. If path is "", the user must replace the word PATH.
func (x *explainer) resumeFrom(id, path string) string {
	if path = shell.Quote(path); path == "''" {
		path = "PATH"
	}
	return resumeCommand(process.Words(), x.command.given, id) + " --source=" + path + withTheSame(x.command.secrets())
}

// sourceMoved prints how to continue a saved upload whose source does not exist.
func (x *explainer) sourceMoved(t *state.Upload) {
	to := renamed(t)
	when := "if the source was moved: "
	if to != "" {
		when = "the source was renamed to " + to + "; to continue: "
	}
	x.console.Fail(when + x.resumeFrom(t.ID, to))
}

// missing prints how to continue the upload of a source that does not exist, if one is saved.
func (x *explainer) missing(file task) {
	ctx, stop := context.WithTimeout(context.Background(), grace.Output)
	defer stop()
	abs := process.Absolute(file.source)
	for _, t := range x.savedUploads(ctx) {
		if t.SourcePath == abs && t.Spec.URL() == file.destination {
			x.console.Fail(fmt.Sprintf("its upload to %s was interrupted, and %s are committed", file.destination, committedText(t)))
			x.sourceMoved(t)
		}
	}
}

// occupiedError means that an upload cannot get another source, because an upload of that source to
// the same destination is saved.
type occupiedError struct {
	text string
	err  error
	id   string // of that upload
}

func (e *occupiedError) Error() string { return e.text }
func (e *occupiedError) Unwrap() error { return e.err }

// occupied returns the error err for t, which cannot get source because of the upload by.
func occupied(err error, source string, t, by *state.Upload) error {
	text := fmt.Sprintf("%s has a saved upload of its own to %s: %s are committed of it, and %s of this one", source, t.Spec.URL(), committedText(by), committedText(t))
	return &occupiedError{text, err, by.ID}
}

// chooseOne prints how to continue one of two uploads of a source.
func (x *explainer) chooseOne(by *occupiedError) {
	x.console.Fail("to continue the upload of that source: " + x.command.resume(by.id))
	x.console.Fail("to continue this one instead, discard that one, and run the same command again: " + savedCommand(process.Words(), x.command.given, "uploads cancel", by.id))
}
