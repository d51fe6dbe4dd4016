package upload

import (
	"context"
	"fmt"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/batch"
)

// callSkip is the rule of [CallOptions]. It has a function, so that a program that sets
// no rule does not link the comparison.
type callSkip struct {
	opts  BatchOptions // Skip is set
	apply func(context.Context, *job) (bool, error)
}

// newCallSkip returns the callSkip of a rule, or nil for SkipNothing.
func newCallSkip(rule Skip) (*callSkip, error) {
	switch {
	case rule == SkipNothing:
		return nil, nil
	case rule < 0 || int(rule) >= len(skipNames):
		return nil, fmt.Errorf("%v: no such rule", rule)
	}
	return &callSkip{BatchOptions{Skip: rule}, skipCall}, nil
}

// skipped applies the rule of CallOptions to the job of a call, whose source is open. It
// reports whether the upload is not necessary.
func (j *job) skipped(ctx context.Context) (bool, error) {
	if j.u.skip == nil {
		return false, nil
	}
	return j.u.skip.apply(ctx, j)
}

// skipCall is skipped for a job with a rule.
func skipCall(ctx context.Context, j *job) (bool, error) {
	rule := j.batch.Skip
	if rule == SkipSameTime && j.file.Identity().ModTimeNS == 0 {
		rule = SkipIdentical
	}
	j.writeTime()
	want := j.spec
	j.setSpec(want.Resolved())
	skipped, err := j.skip(ctx, rule, false, nil)
	want.Gzip = j.spec.Gzip // see SkipSameContent
	j.spec = want
	return skipped, err
}

// writeTime adds the modification time of the file to the metadata, for SkipSameTime.
func (j *job) writeTime() {
	if ns := j.file.Identity().ModTimeNS; j.timed() && ns != 0 && !batch.Recent(time.Unix(0, ns)) {
		j.spec = withMetadata(j.spec, session.FileModTimeKey, time.Unix(0, ns).Unix())
	}
}

// skipsStream returns an error if the rule of CallOptions needs a source that can be
// compared with an object, which a stream is not.
func (j *job) skipsStream() error {
	if j.u.skip != nil && j.batch.Skip != SkipExisting {
		return fmt.Errorf("%w: a stream cannot be compared with an object to skip it", session.ErrInvalid)
	}
	return nil
}
