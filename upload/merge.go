package upload

import (
	"iter"
	"strings"

	"gcsup/session"
)

// A page of a listing costs the service and the network about as much as
// worthwhile GETs of single objects, and the engine makes these in parallel.
const (
	worthwhile = 8 // jobs that a page must answer

	// After poorPages pages in a row that were not worth their request, the next
	// skipFirst jobs are not looked up, then one more page is tried. The number
	// doubles up to skipMost.
	poorPages = 3
	skipFirst = 8
	skipMost  = 1024
)

// merge looks names up in a listing. Both have the order of the raw bytes of the
// names. It has the current page only, and makes no request: find returns what
// it needs.
//
// If a page answers fewer jobs than it is worth, the prefix is denser than the
// walk there. Then merge does not read on, but jumps to the next job. If several
// jumps in a row do not pay off, it leaves some jobs to be looked up one by one.
type merge struct {
	prefix string

	page  []session.Object
	at    int    // the first object of page that is not less than name
	last  string // the greatest name of the pages since the last jump
	began bool   // page is one of the listing
	end   bool   // no page follows

	name     string // of the newest job
	off      bool   // nothing is looked up any more
	unsorted bool   // off, because names came out of order

	served int // jobs that page answered
	poor   int // pages in a row that were not worthwhile
	skip   int // jobs that will not be looked up before the next try
	skips  int // the value of skip after the newest unsuccessful try
}

// mergeStep is what merge.find does, or needs.
type mergeStep int

const (
	mergeAnswer mergeStep = iota // the listing has the object, or does not have it
	mergeSkip                    // the job is not looked up
	mergeNext                    // the next page must be added
	mergeJump                    // the first page of a listing that begins at name must be added
)

// find looks the name of the next job up. After mergeNext and mergeJump, the
// caller adds a page and calls find with the same name again.
func (m *merge) find(name string) (mergeStep, *session.Object) {
	if !m.off && name < m.name {
		m.outOfOrder()
	}
	if m.off {
		return mergeSkip, nil
	}
	m.name = name
	for m.at < len(m.page) && m.page[m.at].Name < name {
		m.at++
	}
	switch {
	case m.at < len(m.page):
		m.served++
		if o := &m.page[m.at]; o.Name == name {
			return mergeAnswer, o
		}
		return mergeAnswer, nil
	case m.end:
		return mergeAnswer, nil
	case m.skip > 0:
		m.skip--
		return mergeSkip, nil
	case !m.began:
		return mergeJump, nil
	case len(m.page) == 0:
		return mergeNext, nil // an empty page that is not the last
	}
	return m.leave(), nil
}

// leave returns how to continue after the last object of a page.
func (m *merge) leave() mergeStep {
	if m.worthwhile() {
		m.poor, m.skips = 0, 0
		return mergeNext
	}
	m.poor++
	if m.poor < poorPages {
		return mergeJump
	}
	m.poor = poorPages - 1 // one more poor page is enough
	m.skips = min(max(skipFirst, 2*m.skips), skipMost)
	m.skip = m.skips - 1 // this job is the first
	m.page, m.at, m.began = nil, 0, false
	return mergeSkip
}

// worthwhile reports whether the page was worth its request, so that the next
// one probably will be.
func (m *merge) worthwhile() bool { return m.served >= worthwhile }

// add adds the page that find asked for. jumped reports that it is the first of a
// listing that begins at the name of the newest job.
func (m *merge) add(page *session.ObjectPage, jumped bool) {
	if jumped {
		m.last = m.name
	}
	for i := range page.Objects {
		name := page.Objects[i].Name
		if name < m.last || !strings.HasPrefix(name, m.prefix) {
			m.outOfOrder()
			return
		}
		m.last = name
	}
	m.page, m.at, m.began, m.end, m.served = page.Objects, 0, true, page.NextPageToken == "", 0
}

// stop ends the merge: no other job is looked up.
func (m *merge) stop() { m.off, m.page = true, nil }

// outOfOrder ends the merge, because a name was not in its place.
func (m *merge) outOfOrder() {
	m.unsorted = true
	m.stop()
}

// pageSource has the pages of one listing. After the caller stopped using it, it
// must call close.
type pageSource interface {
	// seek returns the first page of the objects whose names are not less than
	// name.
	seek(name string) (*session.ObjectPage, error)

	// next returns the page after the one that seek or next returned before.
	next() (*session.ObjectPage, error)

	// prefetch starts to fetch the page that next will return. It does not wait,
	// and does nothing if that page is on its way already, or does not exist.
	prefetch()

	close()
}

// lookup looks one name up. listed is false if that was left out.
func (m *merge) lookup(name string, pages pageSource) (object *session.Object, listed bool, err error) {
	for {
		step, o := m.find(name)
		switch step {
		case mergeAnswer:
			if m.worthwhile() && !m.end {
				pages.prefetch()
			}
			return o, true, nil
		case mergeSkip:
			return nil, false, nil
		}
		var page *session.ObjectPage
		if step == mergeJump {
			page, err = pages.seek(name)
		} else {
			page, err = pages.next()
		}
		if err != nil {
			m.stop()
			return nil, false, err
		}
		m.add(page, step == mergeJump)
	}
}

// mergeJobs looks the jobs up whose objects are in the bucket and have the prefix
// of m. The others pass, as do those with an error. An error of pages has a pair
// without a job, and the jobs after it are not looked up.
func (m *merge) mergeJobs(bucket string, jobs iter.Seq[Job], pages pageSource) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		defer pages.close()
		for job := range jobs {
			if job.Err == nil && !job.Listed && job.Spec.Bucket == bucket && strings.HasPrefix(job.Spec.Object, m.prefix) {
				object, listed, err := m.lookup(job.Spec.Object, pages)
				if err != nil && !yield(Job{}, err) {
					return
				}
				job.Listed, job.Object = listed, nil
				if object != nil {
					// A copy with the strings of the job does not keep the page.
					o := *object
					o.Bucket, o.Name = job.Spec.Bucket, job.Spec.Object
					job.Object = &o
				}
			}
			if !yield(job, nil) {
				return
			}
		}
	}
}
