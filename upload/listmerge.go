package upload

import (
	"iter"
	"strings"

	"gcsup/session"
)

// A page of a listing costs about as much as minServed GETs of single objects, which
// the workers make in parallel.
const (
	minServed = 8 // jobs that a page must answer to be worthwhile

	// After poorPages pages in a row that were not worthwhile, the next skipFirst jobs
	// are not looked up. Then one more page is tried. If that page is not worthwhile
	// either, the number doubles, up to skipMost.
	poorPages = 3
	skipFirst = 8
	skipMost  = 1024
)

// listMerge looks up the names of jobs in a listing. Both are in the order of the raw
// bytes of the names. It keeps only the current page and makes no requests: find
// returns which page it needs.
//
// If a page answers too few jobs, the bucket has many more objects there than the
// source has files. Then listMerge starts a new listing at the name of the next job.
// If several of these are not worthwhile, some jobs are left to be looked up one by
// one.
type listMerge struct {
	prefix string

	page  []session.Object
	at    int    // index of the first object of page that is not less than name
	last  string // the greatest name in the listing so far
	began bool   // page is valid
	end   bool   // page is the last one

	name     string // of the newest job
	off      bool   // no more jobs are looked up
	unsorted bool   // off, because names were out of order

	served int // jobs that page answered
	poor   int // pages in a row that were not worthwhile
	skip   int // jobs that will not be looked up before the next try
	skips  int // the value of skip after the last poor page
}

// mergeStep is the result of listMerge.find: its answer, or what it needs.
type mergeStep int

const (
	mergeAnswer mergeStep = iota // it is known whether the listing has the object
	mergeSkip                    // the job is not looked up
	mergeNext                    // the next page must be added
	mergeJump                    // the first page of a new listing from the name must be added
)

// find looks up the name of the next job. After mergeNext and mergeJump, the caller
// must add a page and call find again with the same name.
func (m *listMerge) find(name string) (mergeStep, *session.Object) {
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
func (m *listMerge) leave() mergeStep {
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

// worthwhile reports whether the page answered enough jobs to be worth its request.
func (m *listMerge) worthwhile() bool { return m.served >= minServed }

// add adds the page that find requested. jumped reports that it is the first page of
// a listing from the name of the newest job.
func (m *listMerge) add(page *session.ObjectPage, jumped bool) {
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

// stop ends the merge. No more jobs are looked up.
func (m *listMerge) stop() { m.off, m.page = true, nil }

// outOfOrder ends the merge because the names of the jobs or of the listing are not sorted.
func (m *listMerge) outOfOrder() {
	m.unsorted = true
	m.stop()
}

// pageSource reads listings page by page. The caller must call close in the end.
type pageSource interface {
	// seek starts a listing of the objects whose names are not less than name, and
	// returns its first page.
	seek(name string) (*session.ObjectPage, error)

	// next returns the page after the one that seek or next returned before.
	next() (*session.ObjectPage, error)

	// prefetch starts to fetch the page that next will return, and does not wait for
	// it. It does nothing if that page is being fetched or does not exist.
	prefetch()

	close()
}

// lookup looks up one name. object is nil if the listing does not have it. listed is
// false if the name was not looked up.
func (m *listMerge) lookup(name string, pages pageSource) (object *session.Object, listed bool, err error) {
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

// mergeJobs yields jobs, after looking up those whose objects are in the bucket and have
// the prefix of m. Other jobs, and those with an error, are yielded unchanged. After an
// error of pages, which is yielded with an empty Job, no more jobs are looked up.
func (m *listMerge) mergeJobs(bucket string, jobs iter.Seq[Job], pages pageSource) iter.Seq2[Job, error] {
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
					// A copy that uses the strings of the job does not keep the page in memory.
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
