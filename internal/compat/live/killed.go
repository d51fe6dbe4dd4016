package live

import (
	"bufio"
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/session/state"
)

// killedUpload uploads files of random bytes with gcsup. It kills gcsup after a
// random part of the bytes is sent, and runs it again.
type killedUpload struct {
	target        fakegcstest.Target
	program, dir  string
	size, maxSize int64 // size grows until a kill interrupts the upload
}

// missedError reports why no resume was observed.
type missedError struct{ why string }

func (e *missedError) Error() string { return e.why }

// progress holds the fields of gcsup's JSON lines that this program reads; see
// docs/reference/reference.md.
type progress struct {
	Type        string
	Status      string
	Sent        int64
	BytesSent   int64 `json:"bytes_sent"`
	BytesResent int64 `json:"bytes_resent"`
	ResumedFrom int64 `json:"resumed_from"`
	Error       *struct{ Message string }
}

// check creates the object of that name. If the file was too small for the kill, it
// tries one of four times the size, up to maxSize.
func (u *killedUpload) check(ctx context.Context, name string) (story string, err error) {
	for {
		story, err = u.attempt(ctx, name)
		if missed := new(missedError); !errors.As(err, &missed) || u.size >= u.maxSize || ctx.Err() != nil {
			return story, err
		}
		u.size = min(4*u.size, u.maxSize)
	}
}

func (u *killedUpload) attempt(ctx context.Context, name string) (story string, err error) {
	dir, err := os.MkdirTemp(u.dir, "")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	source, state := filepath.Join(dir, "source"), filepath.Join(dir, "state")
	crc32c, err := writeRandom(source, u.size)
	if err != nil {
		return "", err
	}
	defer func() { // cancel an unfinished upload
		err = errors.Join(err, u.cancel(context.WithoutCancel(ctx), state))
	}()
	object := u.target.Prefix + name
	args := []string{"cp", "--json", "--state-dir", state, source, "gs://" + u.target.Bucket + "/" + object}

	sent, err := u.runAndKill(ctx, args)
	if err != nil {
		return "", err
	}
	committed, err := u.committed(ctx, state)
	if err != nil {
		return "", fmt.Errorf("after the kill at %d of %d bytes: %w", sent, u.size, err)
	}
	if committed < fakegcstest.Granularity || committed == u.size {
		return "", &missedError{fmt.Sprintf("when gcsup was killed, at %d bytes sent, the service held %d of %d", sent, committed, u.size)}
	}

	var stderr bytes.Buffer
	second := exec.CommandContext(ctx, u.program, args...)
	second.Stderr = &stderr
	out, err := second.Output()
	if err != nil {
		return "", fmt.Errorf("the second run: %w: %s", err, stderr.Bytes())
	}
	var result progress
	if err := json.Unmarshal(lastResult(out), &result); err != nil {
		return "", fmt.Errorf("the second run's result: %w", err)
	}
	story = fmt.Sprintf("killed at %d of %d bytes sent; the service held %d; resumed from %d, sent %d, %d of them twice",
		sent, u.size, committed, result.ResumedFrom, result.BytesSent, result.BytesResent)
	o, err := (&bucket{u.target}).object(ctx, object)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", story, err)
	case o.Size != u.size || o.CRC32C != fakegcs.CRC32C(crc32c):
		return "", fmt.Errorf("%s: the object has %d bytes with crc32c %s, the file %d with %s", story, o.Size, o.CRC32C, u.size, fakegcs.CRC32C(crc32c))
	case result.ResumedFrom < committed: // the service may have committed more
		return "", fmt.Errorf("%s: it did not resume at the committed offset", story)
	case result.BytesSent-result.BytesResent != u.size-result.ResumedFrom:
		return "", fmt.Errorf("%s: it did not send exactly the rest", story)
	}
	return story, nil
}

// runAndKill runs gcsup and kills it after it reports that a random part of the
// bytes, between 10 % and 80 %, is sent. It returns the reported offset.
func (u *killedUpload) runAndKill(ctx context.Context, args []string) (sent int64, err error) {
	at := u.size/10 + rand.Int64N(u.size*7/10)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, u.program, args...)
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var last progress
	killed := false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var p progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			_, _ = cmd.Process.Kill(), cmd.Wait()
			return 0, fmt.Errorf("gcsup printed %q: %w", lines.Bytes(), err)
		}
		if p.Type != "summary" {
			last = p
		}
		if !killed && p.Type == "progress" && p.Sent >= at {
			sent, killed = p.Sent, true
			_ = cmd.Process.Kill() // it may have exited already
		}
	}
	err = cmd.Wait()
	switch {
	case last.Type == "result" && last.Status == "ok":
		return 0, &missedError{fmt.Sprintf("%d bytes had arrived before gcsup could be killed", u.size)}
	case last.Type == "result" && last.Error != nil:
		return 0, fmt.Errorf("the first run: %s", last.Error.Message)
	case !killed:
		return 0, fmt.Errorf("the first run: %w: %s", err, stderr.Bytes())
	}
	return sent, nil
}

// committed queries the committed offset of the saved upload until two answers
// agree. The service may still commit bytes of the killed process:
// https://github.com/googleapis/google-cloud-cpp/issues/9750.
func (u *killedUpload) committed(ctx context.Context, stateDir string) (int64, error) {
	before := int64(-1)
	for {
		held := int64(-1)
		err := u.eachSaved(ctx, stateDir, func(client *session.Client, t *state.Upload) error {
			switch reply := client.Query(ctx, t.URI); reply.Status {
			case http.StatusPermanentRedirect:
				held = max(reply.Committed, 0)
			case http.StatusOK, http.StatusCreated:
				held = t.Source.Size
			default:
				return fmt.Errorf("status query: %s", decide.Short(reply.Refusal()))
			}
			return nil
		})
		switch {
		case err != nil:
			return 0, err
		case held < 0:
			return 0, errors.New("gcsup had saved no upload")
		case held == before:
			return held, nil
		}
		before = held
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// cancel cancels the saved uploads at the service.
func (u *killedUpload) cancel(ctx context.Context, stateDir string) error {
	return u.eachSaved(ctx, stateDir, func(client *session.Client, t *state.Upload) error {
		client.Cancel(ctx, t.URI) // if it fails, the service drops the session after a week
		return nil
	})
}

// eachSaved calls f for the uploads that gcsup has saved.
func (u *killedUpload) eachSaved(ctx context.Context, stateDir string, f func(*session.Client, *state.Upload) error) error {
	client, err := session.NewClient(u.target.Client, u.target.URL)
	if err != nil {
		return err
	}
	store, err := state.OpenDir(filepath.Join(stateDir, "uploads"))
	if err != nil {
		return err
	}
	defer store.Close()
	ids, err := store.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		t, err := store.Load(ctx, id)
		if err == nil {
			err = state.Adopt(client, t)
		}
		if err == nil {
			err = f(client, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeRandom(path string, size int64) (crc32c uint32, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, err = io.CopyN(io.MultiWriter(f, sum), rand.NewChaCha8(seed), size)
	return sum.Sum32(), errors.Join(err, f.Close())
}

// lastResult returns the last result in the output of gcsup. A summary follows it.
func lastResult(out []byte) (last []byte) {
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte(`"type":"result"`)) {
			last = line
		}
	}
	return last
}
