package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

// Status is the state of an outbox.
type Status struct {
	Dir         string    `json:"dir"`
	Destination string    `json:"destination,omitempty"` // gs://BUCKET/PREFIX
	Time        time.Time `json:"time"`                  // of this status
	Running     *Process  `json:"running,omitempty"`     // the process that uploads; nil if there is none
	Unsaved     bool      `json:"unsaved,omitempty"`     // that process cannot save its status: the files were counted, and the rest is not known

	Backlog Count     `json:"backlog"`         // files that are not uploaded, without those in .failed
	Oldest  time.Time `json:"oldest,omitzero"` // when the oldest file of the backlog was changed or put there
	Failed  Count     `json:"failed"`          // in .failed; only ReadStatus sets it

	Settling  int `json:"settling"`  // of the backlog: may still be written to
	Ready     int `json:"ready"`     // wait for their turn
	Uploading int `json:"uploading"` // under way
	Waiting   int `json:"waiting"`   // failed, and wait for the next attempt
	Kept      int `json:"kept"`      // uploaded, and still there

	Uploaded  Count            `json:"uploaded"`           // since the start, including Identical
	Identical int64            `json:"identical"`          // files whose object existed already
	Sent      int64            `json:"sent"`               // bytes handed to the network
	Retries   int64            `json:"retries"`            // requests that failed and were repeated
	Failures  map[string]int64 `json:"failures,omitempty"` // attempts that failed, by upload.ErrorKind

	Scanned  time.Time `json:"scanned,omitzero"` // when the last complete scan ended
	Notified bool      `json:"notified"`         // new files are noticed at once
	Turn     time.Time `json:"turn,omitzero"`    // when the loop of Run last made a turn: at least every second, unless it hangs

	// Files has at most 100 files: first failed files, by number of failures, and then files under way,
	// by name. If there are more, each kind has at least half of the 100, unless it has fewer files.
	Files []FileStatus `json:"files,omitempty"`
}

// Count is a number of files and of their bytes.
type Count struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (c *Count) add(size int64) {
	c.Files++
	c.Bytes += size
}

// Process is a process that runs an outbox. Its fields are zero if it could not save them, for example because the disk
// is full.
type Process struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// FileStatus is the state of a file. Its State is disposing while the object exists, and the file is being removed,
// moved or recorded.
type FileStatus struct {
	Name      string        `json:"name"`
	State     string        `json:"state"` // uploading, disposing, waiting, failed
	Size      int64         `json:"size"`
	Committed int64         `json:"committed,omitempty"` // bytes that the service has
	Failures  int           `json:"failures,omitempty"`  // attempts in a row that failed
	Kind      string        `json:"kind,omitempty"`      // of the last failure
	Error     string        `json:"error,omitempty"`
	Next      time.Duration `json:"next,omitempty"` // until the next attempt, in ns
}

// maxFiles bounds Status.Files.
const maxFiles = 100

// Status returns the current state. The time that it takes is proportional to the number of files.
func (o *Outbox) Status() Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.counters
	s := Status{
		Dir: o.dir, Destination: o.to.URL(), Time: time.Now(),
		Uploaded: Count{c.uploaded, c.bytes}, Identical: c.identical, Sent: c.sent, Retries: c.retries, Failures: c.byKind(),
		Scanned: c.scanned, Turn: c.turn, Notified: o.notified != nil && o.notified(),
	}
	now := time.Since(o.opened)
	oldest := int64(0)
	failing, active := newForemost(moreFailures), newForemost(byName)
	for f := range o.table.files.all() {
		if f.phase == kept {
			s.Kept++
			continue
		}
		s.Backlog.add(max(f.size(), 0))
		if arrived := arrival(f.id); arrived != 0 && (oldest == 0 || arrived < oldest) {
			oldest = arrived
		}
		switch f.phase {
		case settling:
			s.Settling++
			continue
		case complete:
			s.Ready++
			continue
		case uploading, disposing:
			s.Uploading++
			active.add(f)
		case waiting, failed:
			s.Waiting++
			failing.add(f)
		}
	}
	for _, f := range shared(failing.entries(), active.entries()) {
		s.Files = append(s.Files, o.table.status(f, now))
	}
	if oldest != 0 {
		s.Oldest = time.Unix(0, oldest)
	}
	return s
}

// arrival returns when a file was put in the directory, or was last changed, in ns since 1970.
func arrival(id chunk.Identity) int64 { return cmp.Or(id.ChangeTimeNS, id.ModTimeNS) }

// status returns the state of a file.
func (t *table) status(f *entry, now instant) FileStatus {
	s := FileStatus{Name: f.name, State: f.phase.String(), Size: f.size(), Committed: t.committed[f], Failures: int(f.failures)}
	if f.why != nil {
		s.Kind, s.Error = f.why.kind, f.why.text
	}
	if f.phase == waiting {
		s.Next = max(0, f.due-now)
	}
	return s
}

// empty reports whether no file is known.
func (t *table) empty() bool { return t.files.n == 0 }

// statusFile has the status of the process that runs the outbox, for ReadStatus. It is in stateDir.
const statusFile = "status.json"

// saveEvery is how often the status is saved if it changes.
const saveEvery = time.Second

// saveAtLeast is how often the status is saved if it does not change.
const saveAtLeast = 20 * time.Second

// saveStatus saves the status, when it has changed and at most once a second, until ctx is done, and then once
// more. The channel is closed when it has ended. If the status cannot be saved, because the disk is full, the lock shows
// that the process is alive.
func (o *Outbox) saveStatus(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	var last []byte // without the times that always change
	var saved time.Time
	save := func() {
		s := o.Status()
		quiet := s
		quiet.Time, quiet.Turn = time.Time{}, time.Time{}
		content, err := json.Marshal(quiet)
		if err != nil || bytes.Equal(content, last) && time.Since(saved) < saveAtLeast {
			return
		}
		last, saved = content, time.Now()
		text, err := json.Marshal(s)
		if err != nil {
			return
		}
		if o.writeStatus(append(text, '\n')) != nil {
			touchLock(o.state)
		}
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(saveEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				save()
			case <-ctx.Done():
				save()
				return
			}
		}
	}()
	return done
}

// writeStatus replaces the saved status.
func (o *Outbox) writeStatus(text []byte) error {
	const temp = statusFile + ".new"
	_ = o.state.Remove(temp)
	f, err := o.state.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return o.state.Rename(temp, statusFile)
}

// staleAfter is the age of a saved status from which on it shows that the process hangs, or cannot save its status.
const staleAfter = time.Minute

// Stale reports whether the process that runs the outbox has saved no status for so long that it may hang.
func (s *Status) Stale(now time.Time) bool { return s.Running != nil && now.Sub(s.Time) > staleAfter }

// ReadStatus returns the status of an outbox that another process may run. It reads the directory. If a process
// runs the outbox, the status is what that process saved at most a second ago, or at most 20 s ago if nothing
// changed. If it cannot save its status, [Status].Unsaved is set, and the status has what the directory shows.
func ReadStatus(dir string) (Status, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Status{}, err
	}
	if info, err := os.Stat(dir); err != nil {
		return Status{}, err
	} else if !info.IsDir() {
		return Status{}, &fs.PathError{Op: "status", Path: dir, Err: errors.New("not a directory")}
	}
	s := Status{}
	held, err := holder(dir)
	if err != nil {
		return Status{}, err
	}
	if f, err := boxDisk(dir).open(filepath.Join(dir, stateDir, statusFile)); err == nil {
		_ = json.NewDecoder(f).Decode(&s) // an older or newer version has other fields
		_ = f.Close()
	}
	now := time.Now()
	count := held == nil
	if count {
		s = Status{Destination: s.Destination, Scanned: s.Scanned, Time: now}
	} else if touched := lockTouched(dir); now.Sub(s.Time) > staleAfter && now.Sub(touched) <= staleAfter && touched.Sub(held.Since) > saveEvery/2 {
		count, s = true, Status{Destination: s.Destination, Scanned: s.Scanned, Time: now, Unsaved: true}
	} else if s.Time.Before(held.Since) { // an earlier process has saved it
		count, s = true, Status{Destination: s.Destination}
	}
	if count {
		if err := s.count(dir); err != nil {
			return Status{}, err
		}
	}
	if held != nil {
		s.Running = &Process{Host: held.Host, PID: held.PID, Since: held.Since}
	}
	s.Dir = dir
	failures, err := Failed(dir)
	if err != nil {
		return Status{}, err
	}
	s.Failed = Count{}
	for _, f := range failures {
		s.Failed.add(f.Size)
	}
	return s, nil
}

// count counts the files of an outbox that no process runs. Which of them are kept is not known.
func (s *Status) count(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(dir, path)
		switch {
		case rerr != nil:
			return rerr
		case path != dir && hidden(filepath.ToSlash(name)):
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case gone(err):
			return nil
		case err != nil:
			return err
		case !entry.Type().IsRegular():
			return nil
		}
		id, err := sourcefile.StatIdentity(path)
		if err != nil {
			return nil // it was removed
		}
		s.Backlog.add(id.Size)
		if arrived := time.Unix(0, arrival(id)); s.Oldest.IsZero() || arrived.Before(s.Oldest) {
			s.Oldest = arrived
		}
		return nil
	})
}
