package mirror

import (
	"errors"
	"fmt"
	"iter"

	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/internal/batch"
	"gcsup/upload/tree"
)

// rules decide what is done with a file, and with an object that has no file.
type rules struct {
	skip           upload.Skip
	protect        func(*session.Object) Reason // apart from skipped files; NoReason means that it is deleted
	deleteExcluded bool
}

// merge yields the plan for jobs and objects. Both must be in the order of their names. It
// starts no goroutine and has no side effects. If it cannot continue, the last pair has the error.
func merge(jobs iter.Seq[upload.Job], objects iter.Seq2[*session.Object, error], r rules) iter.Seq2[Action, error] {
	return func(yield func(Action, error) bool) {
		nextJob, stopJobs := iter.Pull(jobs)
		defer stopJobs()
		nextObject, stopObjects := iter.Pull2(objects)
		defer stopObjects()
		m := merger{rules: r, nextJob: nextJob, nextObject: nextObject}
		if m.advanceJob(); m.err == nil {
			m.advanceObject()
		}
		for m.err == nil && (m.hasJob || m.object != nil) {
			if !yield(m.step(), nil) {
				return
			}
		}
		if m.err != nil {
			yield(Action{}, m.err)
		}
	}
}

// merger is the state of a merge.
type merger struct {
	rules
	nextJob    func() (upload.Job, bool)
	nextObject func() (*session.Object, error, bool)

	job     upload.Job // if hasJob
	hasJob  bool
	object  *session.Object // nil at the end
	skipped skippedNames
	leftOut string // the newest name that the limits leave out, if deleteExcluded is set
	err     error
}

// advanceJob gets the next job.
func (m *merger) advanceJob() {
	last := m.job.Spec.Object
	m.job, m.hasJob = m.nextJob()
	if name := m.job.Spec.Object; m.hasJob && name < last {
		m.err = fmt.Errorf("the files are not in the order of their names: %q follows %q", name, last)
	}
}

// advanceObject gets the next object.
func (m *merger) advanceObject() {
	last := m.object
	var ok bool
	if m.object, m.err, ok = m.nextObject(); m.err != nil || !ok {
		m.object = nil
		return
	}
	if last != nil && m.object.Name <= last.Name {
		m.err = fmt.Errorf("%w: the names of the listing are not in order: %q follows %q", session.ErrProtocol, m.object.Name, last.Name)
	}
}

// step returns the action for the next name.
func (m *merger) step() Action {
	if !m.hasJob || m.object != nil && m.object.Name < m.job.Spec.Object {
		a := m.withoutFile()
		m.advanceObject()
		return a
	}
	a := Action{Job: m.job}
	a.Job.Listed = true
	var entry *tree.EntryError
	switch {
	case errors.As(a.Job.Err, &entry):
		a.Kind = Skip
		if entry.Kind == tree.LeftOut && m.deleteExcluded {
			m.leftOut = a.Job.Spec.Object
		} else {
			m.skipped.add(a.Job.Spec.Object, entry.Kind)
		}
	case a.Job.Err != nil:
		a.Kind = Fail
		m.skipped.add(a.Job.Spec.Object, "")
	}
	if a.Job.Err == nil && m.object != nil && m.object.Name == a.Job.Spec.Object {
		a.Object, a.Job.Object = m.object, m.object
		m.advanceObject()
	}
	if a.Job.Err == nil {
		a.Kind = m.ofFile(&a.Job)
	}
	if m.err == nil {
		m.advanceJob()
	}
	return a
}

// withoutFile returns the action for the object, which has no file.
func (m *merger) withoutFile() Action {
	reason := m.protect(m.object)
	if m.skipped.has(m.object.Name) && (reason == NoReason || reason == Excluded) {
		reason = Skipped
	}
	if reason == NoReason && m.object.Name == m.leftOut {
		reason = Excluded
	}
	if reason == NoReason || reason == Excluded && m.deleteExcluded {
		return Action{Kind: Delete, Object: m.object, Reason: reason}
	}
	return Action{Kind: Protect, Object: m.object, Reason: reason}
}

// ofFile returns what is done with a file that can be read.
func (m *merger) ofFile(j *upload.Job) Kind {
	if j.Object == nil {
		return Upload
	}
	like := batch.CompareSize(j.Spec.Gzip, j.Size, j.Object)
	if m.skip == upload.SkipSameTime {
		like = batch.CompareTime(j.Spec.Gzip, j.Size, j.ModTime, j.Object)
	}
	switch {
	case like == batch.Differs, !j.Spec.EncryptionKey.IsZero() && j.Object.HasCRC32C: // an object with a key has none in a listing
		return Upload
	case like == batch.SameTime:
		return Keep
	}
	return Compare
}
