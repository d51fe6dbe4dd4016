package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"gcsup/backoff"
	"gcsup/upload"
	"gcsup/upload/internal/batch"
)

// Options configure an [Outbox]. The zero value uses the defaults.
type Options struct {
	// Settle is how long a file must stay unchanged before it is complete, if nothing else
	// shows that it is. 0 means 10 s, and a negative duration none.
	Settle time.Duration

	// Rescan is the time from the end of a scan of the whole directory to the next one. 0 means 1 minute. New files
	// are usually noticed at once; the scans find those whose notification was lost.
	Rescan time.Duration

	// Then is what happens to a file whose object was verified. The zero value is [Remove].
	Then Then

	// Ordered uploads one file at a time, in the order of the bytes of the names. A file that is
	// not complete, or fails, blocks all later ones.
	Ordered bool

	// Attempts is the number of failures in a row after which a file is moved to .failed. With Ordered, Run
	// ends instead. 0 means 10, and a negative number no limit. The documentation of the package describes
	// which failures count, and when two are enough.
	Attempts int

	// Policy gives the length of the wait after a failure. The zero value is that of package
	// backoff. Each attempt has retries of its own, see [upload.Options].
	Policy backoff.Policy

	// Jobs is that of [upload.BatchOptions]. A file counts from the start of an attempt until it was
	// removed, moved or recorded.
	Jobs int

	// Spec completes the Spec of a file, for example with a content type. name is relative to the
	// directory, with slashes. It must return the same Spec for a name each time.
	Spec func(name string, spec upload.Spec) upload.Spec

	// Observer is called with the events of each upload, in place of the Observer of the
	// Uploader.
	Observer func(upload.Event)

	// Ended is called when an attempt has ended. It must return soon.
	Ended func(Attempt)

	// Warn is called with a problem that does not stop the outbox. It must return soon.
	Warn func(text string)

	// Ready is called when Run has scanned the directory once.
	Ready func()

	small, large *backoff.Limiter // nil means those of package batch
}

// Attempt is an attempt to upload a file, and what follows it.
type Attempt struct {
	Name     string // in the outbox, with slashes
	Result   *upload.Result
	Err      error         // of the upload; nil if the object exists
	Left     error         // why the file could not be removed, moved or recorded, although its object exists
	Altered  bool          // the file changed meanwhile: it is looked at again
	Failures int           // failures in a row that count, see Options.Attempts
	Next     time.Duration // until the next attempt; 0 if there is none
	GivenUp  bool          // no attempt is left
	Unsaved  bool          // the upload could not be saved for lack of space: the next attempt begins at once and saves nothing
}

// cheapWatch reports whether notifications need no open file for each file of the directory, as with kqueue on
// other systems. Without them, scans find new files.
const cheapWatch = runtime.GOOS == "linux" || runtime.GOOS == "windows"

const (
	defaultSettle   = 10 * time.Second
	defaultRescan   = time.Minute
	defaultAttempts = 10
)

// Outbox is an open outbox. Its methods are safe for concurrent use.
type Outbox struct {
	dir    string // absolute
	up     *upload.Uploader
	to     upload.Spec // Object is the prefix
	opts   Options
	unlock func()

	box            osDisk
	state          *os.Root // the directory .outbox
	linksProtected bool     // see linksProtected

	disposer disposer
	memory   *memory // nil unless files are kept
	opened   time.Time
	watch    bool // tests of virtual time switch it off

	mu       sync.Mutex // guards the rest
	table    *table
	counters counters
	warned   bool        // that kept files cannot be recorded
	notified func() bool // new files are noticed at once; nil before Run
}

// Open opens the outbox in a directory, which must exist, and locks it until Close. If another
// process has it open, the error is an [*InUseError]. The file a becomes the object whose
// name is to.Object + "a".
//
// up should have a Store, so that large files resume, and RestartChanged, so that a file that
// was replaced is sent from its start.
func Open(dir string, up *upload.Uploader, to upload.Spec, opts *Options) (*Outbox, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("outbox %s: not a directory", dir)
	}
	o := &Outbox{dir: dir, up: up, to: to, opened: time.Now(), watch: cheapWatch}
	if opts != nil {
		o.opts = *opts
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := o.spec("name").Validate(); err != nil {
		return nil, err
	}
	if o.unlock, err = lock(dir); err != nil {
		return nil, err
	}
	if err := o.open(); err != nil {
		if o.state != nil {
			_ = o.state.Close()
		}
		o.unlock()
		return nil, fmt.Errorf("outbox %s: %w", dir, err)
	}
	return o, nil
}

func (o *Outbox) setDefaults() error {
	p := &o.opts
	if err := p.Policy.Validate(); err != nil {
		return err
	}
	if p.Rescan < 0 {
		return errors.New("outbox: Rescan is negative")
	}
	p.Settle = max(cmp.Or(p.Settle, defaultSettle), 0)
	p.Rescan = cmp.Or(p.Rescan, defaultRescan)
	p.Attempts = max(cmp.Or(p.Attempts, defaultAttempts), 0)
	small, large := batch.NewLimiters(batch.OpenFiles())
	l := limits{
		small: newLane(p.Jobs, cmp.Or(p.small, small), p.Ordered), large: newLane(p.Jobs, cmp.Or(p.large, large), p.Ordered),
		jobs: cmp.Or(max(p.Jobs, 0), math.MaxInt), memory: 64 << 20, ordered: p.Ordered,
	}
	if p.Spec == nil {
		p.Spec = func(_ string, spec upload.Spec) upload.Spec { return spec }
	}
	if p.Warn == nil {
		p.Warn = func(string) {}
	}
	o.table = newTable(rules{settle: p.Settle, attempts: p.Attempts, policy: p.Policy, ordered: p.Ordered}, l)
	return nil
}

// open prepares the locked directory.
func (o *Outbox) open() (err error) {
	if err := checkOwn(o.dir, failedDir); err != nil {
		return err
	}
	// A user who can rename the directory .outbox can put another one in its place.
	if o.state, err = openOwn(o.dir, stateDir); err != nil {
		return err
	}
	o.box = osDisk{[]place{{filepath.Join(o.dir, stateDir), o.state}, {path: o.dir}}}
	o.linksProtected = linksProtected()
	o.disposer = disposer{dir: o.dir, check: func() error { return checkOwn(o.dir, failedDir) }}
	if to := o.opts.Then.dir; to != "" {
		if o.disposer.to, err = filepath.Abs(to); err != nil {
			return err
		}
		o.box.places = append(o.box.places, place{path: o.disposer.to})
		if err := checkMove(o.box, o.dir, o.disposer.to); err != nil {
			return err
		}
	}
	o.disposer.disk, o.disposer.sync = o.box, newGroupSync(o.box).sync
	if err := o.disposer.recover(); err != nil {
		return err
	}
	// Make it now, because there may be no space when it is needed.
	_ = o.disposer.dirs.makeAll(o.box, o.dir, filepath.Join(o.dir, removingDir))
	if o.opts.Then.keep {
		o.memory, err = openMemory(o.dir, o.up.Endpoint())
	}
	return err
}

// Close unlocks the directory. Run must have returned.
func (o *Outbox) Close() error {
	var err error
	if o.memory != nil {
		err = o.memory.close()
	}
	_ = o.state.Close()
	o.unlock()
	return err
}

// now returns the moment of a decision. The caller holds mu.
func (o *Outbox) now() moment {
	now := time.Now()
	return o.table.moment(now.Sub(o.opened), o.opened, now)
}

// path returns the path of a file.
func (o *Outbox) path(name string) string { return filepath.Join(o.dir, filepath.FromSlash(name)) }

// spec returns the Spec of a file.
func (o *Outbox) spec(name string) upload.Spec {
	spec := o.to
	spec.Object += name
	return o.opts.Spec(name, spec)
}
