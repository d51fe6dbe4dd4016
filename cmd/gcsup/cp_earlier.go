package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/session/state"
)

// announceEarlierFile names an interrupted upload of the same file to another object of the same bucket.
func (x *explainer) announceEarlierFile(ctx context.Context, saved []*state.Upload, file task) {
	abs := process.Absolute(file.source)
	x.announceEarlier(ctx, saved, file.source, file.destination, func(t *state.Upload) bool { return t.SourcePath == abs })
}

// announceEarlierStream names an interrupted upload of a stream with the same name to another object of the same
// bucket.
func (x *explainer) announceEarlierStream(ctx context.Context, name, destination string) {
	if name != "" {
		x.announceEarlier(ctx, x.savedUploads(ctx), "the same command", destination, func(t *state.Upload) bool {
			return t.Spool != nil && t.SourceIdentity == name
		})
	}
}

// announceEarlier names the newest interrupted upload of a source to another object of the bucket of destination. A
// nightly job whose objects have a date in their names leaves one, which no later run resumes. Nothing happens to
// it: only the user knows whether the object is still needed.
func (x *explainer) announceEarlier(
	ctx context.Context, saved []*state.Upload, source, destination string, same func(*state.Upload) bool,
) {
	bucket, object, err := parseDestination(destination)
	if err != nil {
		return
	}
	var earlier *state.Upload
	others := 0
	for _, t := range saved {
		sibling := t.Endpoint == x.endpoint && t.Spec.Bucket == bucket && t.Spec.Object != object
		if !sibling || !same(t) || x.saved.inUse(ctx, t.ID) {
			continue
		}
		if earlier == nil || t.Created.After(earlier.Created) {
			earlier = t
		}
		others++
	}
	if earlier == nil {
		return
	}
	text := fmt.Sprintf("%s has an interrupted upload to %s, started %s ago: %s are committed",
		source, earlier.Spec.URL(), readable.Span(time.Since(earlier.Created)), committedText(earlier))
	now := sourceState(earlier)
	switch now {
	case sourceChanged:
		text += "; the file has changed since, so that it cannot be resumed"
	case sourceIncomplete:
		text += "; its output did not end, so that it cannot be resumed"
	}
	x.console.Message("%s", text)
	if now != sourceChanged && now != sourceIncomplete {
		x.console.Message("to resume it: %s", process.Block(x.command.resume(earlier.ID)))
	}
	remove := savedCommand(process.Words(), x.command.given, "uploads cancel", earlier.ID)
	x.console.Message("to remove it: %s", process.Block(remove))
	if others--; others > 0 {
		text := readable.Plural(others, "more interrupted upload", "more interrupted uploads")
		x.console.Message("%s of that source: see %s uploads list", text, process.Words())
	}
}

// inUse reports whether a process works on a saved upload in a directory.
func (s *lazyStore) inUse(ctx context.Context, id string) bool {
	_, opened, err := s.get(ctx)
	if checker, ok := opened.(state.LockChecker); ok && err == nil {
		locked, err := checker.Locked(ctx, id)
		return locked && err == nil
	}
	return false
}

// commandKeyFile is the file in a state directory that has the key of commandName.
const commandKeyFile = "command.key"

// commandName returns the name under which the stream of a command is saved, or "" if it cannot be found. The name is
// a keyed hash, because the arguments may be secrets that can be guessed.
func (f *targetFlags) commandName(r *reporter, words []string) string {
	dir, err := stateDir(f.state.dir)
	var key []byte
	if err == nil {
		key, err = readCommandKey(filepath.Join(dir, commandKeyFile))
	}
	if err != nil {
		r.console.Detail("an earlier upload of the same command is not found: %v", err)
		return ""
	}
	return hashCommand(key, words)
}

// hashCommand returns the name of a command with a key.
func hashCommand(key []byte, words []string) string {
	mac := hmac.New(sha256.New, key)
	for _, word := range words {
		_, _ = mac.Write(binary.AppendUvarint(nil, uint64(len(word)))) // so that "a b" is not "a", "b"
		_, _ = io.WriteString(mac, word)
	}
	return "command:" + hex.EncodeToString(mac.Sum(nil))
}

// readCommandKey returns the key in the file at path, which it creates. It is readable for its owner only.
func readCommandKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) == sha256.Size {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key)
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = process.ReplaceFile(path, key)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path) // another process may have replaced it
}
