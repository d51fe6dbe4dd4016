package tree

import (
	"fmt"
	"time"

	"gcsup/internal/sourcefile"
	"gcsup/upload"
)

// asideMark follows the name of a file that is being removed, see [sourcefile.Aside], in an entry. No name has a NUL, so
// that the file is next to a new file of its name in the order of objects.
const asideMark = "\x00"

// asideEntry returns the entry for a name that is not that of a directory.
func asideEntry(name string) entry {
	if original, ok := sourcefile.FromAside(name); ok {
		return entry(original + asideMark)
	}
	return entry(name)
}

// asideTime is how long the walk waits for a process that removes a file.
const asideTime = time.Second

// aside returns the job for a file that is being removed. It is not uploaded: its object exists, or the file gets its
// name back. If it is there after asideTime, the process that removed it was killed, and the job has an error.
func (w *walker) aside(top *level, name string) (upload.Job, bool) {
	rel, object := "", top.object+name
	if w.run.filter.active() {
		rel = top.rel + name
	}
	if !w.run.wants(object, rel, top.included) {
		return upload.Job{}, false
	}
	aside := sourcefile.Aside(name)
	id, err := sourcefile.StatIdentityIn(top.dir, aside)
	if err != nil {
		return upload.Job{}, false // it was removed, or has its name back
	}
	if left := asideTime - time.Since(time.Unix(0, id.ChangeTimeNS)); left > 0 {
		wait := time.NewTimer(min(left, asideTime))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-w.run.ctx.Done():
			return upload.Job{}, false
		}
		if _, err := top.dir.Lstat(aside); err != nil {
			return upload.Job{}, false
		}
	}
	err = fmt.Errorf("a process was killed while it removed the file %q: rename it to that, or remove it if its object exists", name)
	return w.run.failed(top.path+aside, object, err), true
}
