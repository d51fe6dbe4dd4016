package outbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"gcsup/upload"
)

// loop is one call of [Outbox.Run]. Its goroutine is the only one that starts attempts. It makes no I/O:
// the scanner, the watcher and each attempt have goroutines of their own.
type loop struct {
	*Outbox
	ctx     context.Context
	scanner *scanner
	results chan result
	asides  chan aside

	running  int       // attempts
	giveUps  []*entry  // to move to .failed, one after the other
	aside    bool      // one is being moved
	began    bool      // the directory was scanned, and attempts may begin
	next     instant   // when the table wants to be asked again
	scanning bool      // a scan was asked for, and has not ended
	scanned  time.Time // when the last scan ended
	warned   string    // the last warning about a scan; "" if it was complete
	stop     error     // an ordered file has no attempt left, or no object can be read
}

// aside is the outcome of moving a file to .failed.
type aside struct {
	entry *entry
	event event
}

// StoppedError is the error of Run if files must be uploaded in order, and one has no attempt left.
type StoppedError struct {
	Name     string
	Attempts int
	Err      error // of the last attempt
}

// Error names the file.
func (e *StoppedError) Error() string {
	return fmt.Sprintf("%s failed %d times and blocks all later files: %v", e.Name, e.Attempts, e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *StoppedError) Unwrap() error { return e.Err }

// UnreadableError is the error of Run if the credentials do not permit reading the metadata of objects, so that no
// object can be compared with its file, and no file removed.
type UnreadableError struct {
	Err error // of the last request
}

// Error returns the reason.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("no file can be removed, because the metadata of its object cannot be read: %v", e.Err)
}

// Unwrap returns the error of the last request.
func (e *UnreadableError) Unwrap() error { return e.Err }

// tickEvery is how often the loop makes a turn if nothing happens. See Status.Turn.
const tickEvery = time.Second

// Run uploads files until ctx is done, and then returns nil. The uploads under way are interrupted
// and saved, which takes a few seconds at most. Run returns an error if the directory cannot be
// read when it begins, a [*StoppedError] if files must be uploaded in order and one has no attempt
// left, and an [*UnreadableError] if no file can be removed. It must be called only once.
func (o *Outbox) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &loop{Outbox: o, ctx: ctx, results: make(chan result), asides: make(chan aside, 1), next: never, scanning: true}
	l.scanner = newScanner(o.dir, func(string) {})
	l.scanner.restore = o.disposer.restore
	if o.watch {
		w := newWatcher(o.dir, l.scanner, o.opts.Warn)
		l.scanner.watch = w.add
		o.mu.Lock()
		o.notified = w.notified
		o.mu.Unlock()
		go w.run(ctx)
	}
	go l.scanner.run(ctx)
	saved := o.saveStatus(ctx)
	err := l.run()
	cancel()
	l.drain()
	<-saved
	return err
}

func (l *loop) run() error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case found := <-l.scanner.out:
			if err := l.found(found); err != nil {
				return err
			}
		case r := <-l.results:
			l.ended(r)
		case a := <-l.asides:
			l.aside = false
			l.change(func(now moment, do *todo) { l.table.step(a.entry, a.event, now, do) })
		case <-timer.C:
			l.change(nil)
		case <-tick.C:
			l.change(nil)
			l.rescan()
		case <-l.ctx.Done():
			return nil
		}
		if l.stop != nil {
			return l.stop
		}
		if l.next != never {
			timer.Reset(l.next - time.Since(l.opened))
		}
	}
}

// rescan asks for a scan if none was made for some time. A scan may take longer than that time, and no ordered file is
// taken meanwhile.
func (l *loop) rescan() {
	if !l.scanning && time.Since(l.scanned) >= l.opts.Rescan {
		l.scanning = true
		l.scanner.scanAll()
	}
}

// found passes on what the scanner found.
func (l *loop) found(list []sighting) error {
	first, failed := false, error(nil)
	l.change(func(now moment, do *todo) {
		for _, s := range list {
			switch s.kind {
			case scanBegan:
				l.table.begin()
			case walkBegan:
				l.table.walking++
			case walkEnded:
				l.table.walking--
			case fileSeen:
				l.table.seen(s.name, s.event, now, do)
			case scanEnded:
				l.scanning, l.scanned = false, time.Now()
				l.table.end(s.err == nil, now, do)
				if failed = s.err; failed == nil {
					l.counters.scanned = time.Now()
				}
				first = !l.began
			}
		}
	})
	text := ""
	if failed != nil {
		text = fmt.Sprintf("a part of the directory cannot be read: %v", failed)
	}
	if text != l.warned && text != "" {
		l.opts.Warn(text)
	}
	if len(list) > 0 && list[len(list)-1].kind == scanEnded {
		l.warned = text
	}
	if !first {
		return nil
	}
	if l.table.empty() && failed != nil {
		return failed
	}
	if err := l.recall(); err != nil {
		return err
	}
	if l.began = true; l.opts.Ready != nil {
		l.opts.Ready()
	}
	l.change(nil)
	return nil
}

// recall finds the kept files that an earlier process uploaded.
func (l *loop) recall() error {
	if l.memory == nil {
		return nil
	}
	var jobs []upload.Job
	names := map[string]string{} // by path
	l.mu.Lock()
	for f := range l.table.files.all() {
		path := l.path(f.name)
		names[path] = f.name
		jobs = append(jobs, upload.Job{Path: path, Spec: l.spec(f.name), Size: f.size(), ModTime: time.Unix(0, f.id.ModTimeNS)})
	}
	l.mu.Unlock()
	known, err := l.memory.uploaded(l.ctx, jobs)
	if err != nil {
		if l.ctx.Err() != nil {
			return nil
		}
		return err
	}
	l.change(func(now moment, do *todo) {
		for path := range known {
			l.table.step(l.table.files.get(names[path]), event{kind: remembered}, now, do)
		}
	})
	return nil
}

// maxLooks bounds the files that the scanner has to look at because a time has passed. Many files may settle at
// the same time.
const maxLooks = 2048

// change changes the table, and does what it then wants to have done.
func (l *loop) change(do func(now moment, do *todo)) {
	var want todo
	var start []task
	l.mu.Lock()
	now := l.now()
	if do != nil {
		do(now, &want)
	}
	l.next = max(l.table.expire(now, maxLooks-l.scanner.pending(), &want), now.at+time.Millisecond)
	for l.began && l.ctx.Err() == nil {
		f := l.table.take(now)
		if f == nil {
			break
		}
		start = append(start, task{f, f.name, f.id, f.compare, f.unsaved()})
	}
	l.counters.turn = time.Now()
	l.giveUps = append(l.giveUps, want.giveUp...)
	l.mu.Unlock()
	l.scanner.look(want.look...)
	for _, t := range start {
		l.running++
		go func() { l.results <- l.attempt(l.ctx, t) }()
	}
	l.nextAside()
}

// ended passes on the outcome of an attempt.
func (l *loop) ended(r result) {
	l.running--
	a := r.attempt
	halted := false
	l.change(func(now moment, do *todo) {
		f := r.entry
		l.counters.ended(r)
		l.table.done(f, r.event, a.Err == nil && a.Result.Skipped == upload.SkipNothing, now, do)
		halted = do.halt
		a.Failures, a.GivenUp, a.Altered, a.Unsaved = int(f.attempts), f.phase == failed, r.event.outcome == altered, r.event.outcome == full && f.unsaved()
		if f.phase == waiting && !halted {
			a.Next = f.due - now.at
		}
	})
	if r.event.outcome != interrupted && r.event.outcome != vanished && l.opts.Ended != nil {
		l.opts.Ended(a)
	}
	switch err := cmp.Or(a.Err, a.Left); {
	case halted:
		l.stop = &UnreadableError{err}
	case a.GivenUp && l.opts.Ordered:
		l.stop = &StoppedError{a.Name, a.Failures, err}
	}
}

// nextAside moves the next file that has no attempt left to .failed.
func (l *loop) nextAside() {
	if l.aside || len(l.giveUps) == 0 || l.opts.Ordered {
		return
	}
	f := l.giveUps[0]
	if l.giveUps = l.giveUps[1:]; len(l.giveUps) == 0 {
		l.giveUps = nil
	}
	l.mu.Lock()
	t, attempts, why := task{entry: f, name: f.name, id: f.id}, int(f.attempts), *f.why
	l.mu.Unlock()
	l.aside = true
	go func() { l.asides <- aside{f, l.setAside(t, attempts, why)} }()
}

// drain waits for what is under way. Each upload ends within seconds when ctx is done.
func (l *loop) drain() {
	for l.running > 0 {
		l.ended(<-l.results)
	}
	if l.aside {
		<-l.asides
	}
}

// counters count since the outbox was opened.
type counters struct {
	uploaded, bytes int64 // files and their bytes, with those that were found at the destination
	identical       int64 // files whose object existed already
	sent            int64 // bytes handed to the network
	retries         int64 // requests that failed and were repeated
	failures        map[string]int64
	scanned, turn   time.Time
}

// ended counts an attempt.
func (c *counters) ended(r result) {
	switch r.event.outcome {
	case disposed, recorded:
		c.uploaded++
		c.bytes += r.id.Size
		if r.attempt.Result.Skipped != upload.SkipNothing {
			c.identical++
		}
	case unusable, hopeless, refused, invalid, unavailable, unreadable:
		if c.failures == nil {
			c.failures = map[string]int64{}
		}
		c.failures[r.event.why.kind]++
	}
}

// byKind returns a copy of the failures.
func (c *counters) byKind() map[string]int64 { return maps.Clone(c.failures) }
