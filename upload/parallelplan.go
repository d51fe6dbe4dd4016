package upload

import (
	"context"
	"errors"

	"gcsup/session"
)

// planParallel returns the function that sends a new upload in parts, or nil if the file must
// be sent over one connection.
func planParallel(ctx context.Context, j *job) (func(context.Context) error, error) {
	size, parts := j.file.Total(), j.u.opts.Parallel
	part := parts.partSize(size)
	if part == 0 {
		return nil, nil
	}
	p := &parallel{j: j, size: size}
	suitable, why := p.suitable()
	if len(suitable) == 0 {
		j.reportUndivided(why)
		return nil, nil
	}
	if why := j.u.whyUndivided(); why != "" {
		j.stayUndivided(why)
		return nil, nil
	}
	if err := j.precondition.look(ctx, j.spec); err != nil {
		return nil, err
	}
	if j.precondition.unmet() != nil {
		return nil, nil // the session then reports this, or a missing bucket
	}
	if ok, err := p.noteDestination(ctx); err != nil {
		return nil, err
	} else if !ok {
		j.reportUndivided("the object at the destination cannot be read")
		return nil, nil
	}
	if why := j.u.whyUndivided(); why != "" { // the response time is known now
		j.stayUndivided(why)
		return nil, nil
	}
	seen := p.parts.Seen
	for _, p.joiner = range suitable {
		p.parts = session.Parts{Size: part, Seen: seen}
		refused, err := p.joiner.plan(ctx)
		if err != nil {
			return nil, err
		}
		if refused == "" {
			return p.upload, nil
		}
		why = reasons(why, refused)
	}
	j.stayUndivided(why)
	return nil, nil
}

// stayUndivided reports why a file is sent over one connection. If the only reason is
// that the service is near, the speed of the first request decides.
func (j *job) stayUndivided(why string) {
	if j.u.opts.Parallel.auto && j.u.parts.lacksNearRate(why) {
		j.measureFirst(why)
		return
	}
	j.reportUndivided(why)
}

// whyUndivided returns why several connections would probably not be faster than one, or "".
// It first makes requests until nearReplies response times are known, because the first one
// includes the time to connect.
func (p *parallel) whyUndivided(ctx context.Context) (why string, err error) {
	u := p.j.u
	for range nearReplies {
		if !u.opts.Parallel.auto || u.parts.fastestReply.replies.Load() >= nearReplies || u.whyUndivided() != "" {
			break
		}
		if _, err := p.j.requests.ask(ctx, p.j.wire().stat); err != nil && !refusal(err) {
			return "", err
		}
	}
	return u.whyUndivided(), nil
}

// suitable returns the joiners that support the settings of the object, the preferred
// one first, and the reasons why the others do not.
func (p *parallel) suitable() (ways []joiner, why string) {
	all := []joiner{&multipart{parallel: p}, &composer{p}}
	switch p.j.u.opts.Parallel.way {
	case ByMultipart:
		all = all[:1]
	case ByCompose:
		all = all[1:]
	}
	for _, way := range all {
		if not := way.unsuitable(); not != "" {
			why = reasons(why, not)
			continue
		}
		ways = append(ways, way)
	}
	return ways, why
}

// reasons joins two reasons. The first may be "".
func reasons(first, second string) string {
	if first == "" || first == second {
		return second
	}
	return first + "; " + second
}

// reportUndivided reports why a file is not sent in parts: as a Warning with InParts, because
// the caller asked for parts, and as Undivided with AutoParts.
func (j *job) reportUndivided(why string) {
	if j.u.opts.Parallel.auto {
		j.events.post(Event{Kind: Undivided, Cause: why})
		return
	}
	j.events.post(Event{Kind: Warning, Cause: "the file is sent over one connection: " + why})
}

// noteDestination records the generation of the object at the destination. Without it, an
// object that a request with a lost reply made could not be recognized. ok is false if the
// service does not allow the caller to read it.
func (p *parallel) noteDestination(ctx context.Context) (ok bool, err error) {
	if g := p.j.spec.IfGenerationMatch; g != nil {
		p.parts.Seen = *g
		return true, nil
	}
	a, err := p.j.requests.ask(ctx, p.j.wire().stat)
	switch {
	case refusal(err) && !errors.Is(err, session.ErrCredentials):
		return false, nil
	case err != nil:
		return false, err
	}
	p.parts.Seen = 0
	if a.Object != nil {
		p.parts.Seen = a.Object.Generation
	}
	return true, nil
}
