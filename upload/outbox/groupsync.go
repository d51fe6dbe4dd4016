package outbox

import "sync"

// groupSync makes the names of directories durable. Calls for one directory that overlap share one
// fsync.
type groupSync struct {
	disk disk

	mu   sync.Mutex
	dirs map[string]*dirSync
}

// dirSync is the state of a directory that is being synced.
type dirSync struct {
	next    *syncCall     // begins when the current one has ended; nil if no call waits
	waiting int           // calls that use this dirSync
	running chan struct{} // has an element during an fsync
}

// syncCall is an fsync that several calls wait for.
type syncCall struct {
	done bool
	err  error
}

func newGroupSync(d disk) *groupSync { return &groupSync{disk: d, dirs: map[string]*dirSync{}} }

// sync makes the changes of the names in dir durable that were made before the call.
func (g *groupSync) sync(dir string) error {
	g.mu.Lock()
	d := g.dirs[dir]
	if d == nil {
		d = &dirSync{running: make(chan struct{}, 1)}
		g.dirs[dir] = d
	}
	if d.next == nil {
		d.next = &syncCall{}
	}
	call := d.next
	d.waiting++
	g.mu.Unlock()

	d.running <- struct{}{}
	if !call.done { // only the holder of running reads and writes call
		g.mu.Lock()
		d.next = nil // later calls may have changed names after this fsync began
		g.mu.Unlock()
		call.done, call.err = true, g.disk.sync(dir)
	}
	<-d.running

	g.mu.Lock()
	defer g.mu.Unlock()
	if d.waiting--; d.waiting == 0 {
		delete(g.dirs, dir)
	}
	return call.err
}
