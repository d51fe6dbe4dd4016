package parts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"gcsup/chunk"
	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// Planner plans a new upload of a file.
type Planner struct {
	Division
	Multipart bool // a multipart upload may be used
	Compose   bool // temporary objects may be used
	Buckets   *Buckets
	Size      int64
	ID        string // of the upload, "" if it is not saved
	SpoolSize int64  // limit of the spool that has the bytes of a stream; 0 if they are in memory
	Most      int64  // that a compressed file may have, whose parts are those of one multipart upload; 0 for a stream
	Before    Destination
}

// Destination is what was found out about the destination before the plan. The zero value is nothing.
type Destination struct {
	generation int64
	is         readable
}

// AskBefore finds out what the plan of a stream depends on, without starting anything. What it returns is for a
// Planner.Before, and what it finds out about the bucket is kept. It ignores errors, which the plan will report.
func (p *Planner) AskBefore(ctx context.Context) Destination {
	g, is, err := p.destination(ctx)
	if err != nil {
		return Destination{}
	}
	if is == readIt && p.streamFacts().compose != none {
		if f, release, err := p.bucketFacts(ctx); err == nil {
			_ = f.ask(ctx, p.Wire, true)
			release()
		}
	}
	return Destination{g, is}
}

// Plan finds out what the plan depends on, and returns it. If it is Multipart, the multipart upload is started.
func (p *Planner) Plan(ctx context.Context) (Plan, error) {
	return p.plan(ctx, p.facts(), ways{p.composeFirst, p.prepareFreeCompose, p.prepareMultipart, p.prepareCompose})
}

// PlanStream is Plan for a stream, whose size is Expect.Size or not known. The rate of one connection is not measured
// first, as for a file: what was sent meanwhile would be sent again.
//
// Its multipart upload is started. If the plan is Multipart, it is to the object, and Why has the reasons why the
// stream can have no more than its parts. If the plan is Compose, it is to a temporary object, of which there may be
// several. Temporary objects must cost nothing, also if Options.Auto is not set.
func (p *Planner) PlanStream(ctx context.Context) (Plan, error) {
	f := p.streamFacts()
	first := func() bool { return f.compose != none }
	return p.plan(ctx, f, ways{first, p.prepareTemporary, p.prepareStream, nil})
}

// StreamRefused returns the reasons why a stream is sent over one connection, if they are known without a request.
func (p *Planner) StreamRefused() Reasons {
	if plan := choosePlan(p.streamFacts()); plan.next == planned {
		return plan.Why
	}
	return nil
}

// streamFacts returns what is known of a stream without a request.
func (p *Planner) streamFacts() (f facts) {
	f.divisible, f.need = true, connections.Several
	if !p.Multipart {
		f.refused = Reasons{"a stream is not composed without multipart uploads"}
		if p.Most > 0 {
			f.refused = Reasons{"a compressed file is not composed"}
		}
		return f
	}
	if p.Options.Auto {
		if need, suffices := p.Link.Need(p.Options.Connections); need == connections.One {
			f.need, f.suffices = need, suffices
		}
	}
	size, limit := p.Expect.Size, p.StreamLimit()
	fits := size != nil && *size <= limit || p.SpoolSize > 0 && limit >= MaxObject || p.Most > 0 && p.Most <= limit
	switch why := multipart.Unsupported(p.Wire.Spec); {
	case why != "":
		f.refused = f.refused.and(why)
	case size != nil && !fits:
		f.refused = f.refused.and(fmt.Sprintf("it has %d bytes, and its parts would hold %d", *size, limit))
	case p.Most > 0 && !fits:
		f.refused = f.refused.and(fmt.Sprintf("it may have %d bytes, and its parts would hold %d", p.Most, limit))
	case fits || !p.Options.Auto:
		f.multipart = untried
	}
	switch why := notComposed(p.Wire.Spec); {
	case p.Most > 0, fits && f.multipart == untried: // one multipart upload suffices, or no way does
	case p.SpoolSize > 0:
		f.refused = f.refused.and(fmt.Sprintf("its parts hold %d bytes in a spool of %d", limit, p.SpoolSize))
	case !p.Compose:
		f.refused = f.refused.and("several multipart uploads would have to be composed")
	case why != "":
		f.refused = f.refused.and(why)
	default:
		f.compose = untried
	}
	return f
}

// StreamLimit returns how many bytes the parts of a multipart upload of a stream hold.
func (p *Planner) StreamLimit() int64 {
	if p.SpoolSize > 0 {
		return p.Options.SpoolLimit(p.SpoolSize)
	}
	return p.Options.StreamLimit(p.Memory.Share(), p.Memory.Budget())
}

// ways are the ways to join the parts.
type ways struct {
	first     func() bool // whether a compose comes first if it is free
	free      wayToJoin   // a free compose
	multipart wayToJoin
	compose   wayToJoin // any other compose; nil if there is none
}

// plan is Plan for what is known without a request, and the ways that there are.
func (p *Planner) plan(ctx context.Context, f facts, w ways) (Plan, error) {
	size, seen := p.Options.Size(p.Size), int64(0)
	// try returns what is known of a way to join the parts after prepare has tried it.
	try := func(prepare wayToJoin) (chance, error) {
		f.ready = state.Parts{Size: size, Seen: seen}
		why, err := prepare(ctx, &f.ready)
		if err == nil && why == "" {
			return ready, nil
		}
		if err == nil {
			f.refused = f.refused.and(why)
		}
		return none, err
	}
	for {
		plan, err := choosePlan(f), error(nil)
		switch plan.next {
		case planned:
			return plan, nil
		case readDestination:
			if seen, f.destination = p.Before.generation, p.Before.is; f.destination == unread {
				seen, f.destination, err = p.destination(ctx)
			}
			if f.compose != none && w.first() {
				f.free = untried
			}
		case tryFree:
			if f.free, err = try(w.free); w.compose == nil {
				f.compose = f.free
			}
		case tryMultipart:
			f.multipart, err = try(w.multipart)
		case tryCompose:
			f.compose, err = try(w.compose)
		}
		if err != nil {
			return Plan{}, err
		}
	}
}

// facts returns what is known without a request.
func (p *Planner) facts() (f facts) {
	if f.divisible = p.Options.Size(p.Size) > 0; !f.divisible {
		return f
	}
	consider := func(is *chance, not string) {
		if not == "" {
			*is = untried
		} else {
			f.refused = f.refused.and(not)
		}
	}
	if p.Multipart {
		consider(&f.multipart, multipart.Unsupported(p.Wire.Spec))
	}
	if p.Compose {
		consider(&f.compose, notComposed(p.Wire.Spec))
	}
	f.need = connections.Several
	if p.Options.Auto {
		f.need, f.suffices = p.Link.Need(p.Options.Connections)
	}
	return f
}

// wayToJoin completes the parts of a new upload for one way to join them. It returns the reason if the bucket or
// the service does not allow it.
type wayToJoin func(ctx context.Context, chosen *state.Parts) (why string, err error)

// composeFirst reports whether parts of a multipart upload would be slow, or would be at risk together. The service keeps
// what arrived of a session, and nothing of such a part that is not complete. A compose that costs nothing is then better.
func (p *Planner) composeFirst() bool {
	return p.Multipart && p.Compose && notComposed(p.Wire.Spec) == "" && (p.Options.risky(p.Size) || p.Options.Auto && p.Link.Long())
}

// destination returns the generation of the object at the destination, 0 if there is none, and whether it can be read.
func (p *Planner) destination(ctx context.Context) (generation int64, is readable, err error) {
	if g := p.Wire.Spec.IfGenerationMatch; g != nil {
		return *g, readIt, nil
	}
	a, err := p.Wire.Ask(ctx, decide.Request{Optional: true}, p.Wire.Stat)
	switch {
	case engine.Refusal(err) && !errors.Is(err, session.ErrCredentials):
		return 0, unreadable, nil
	case err == nil && a.Object != nil:
		generation = a.Object.Generation
	}
	return generation, readIt, err
}

// prepareMultipart starts the upload. Without Options.Auto, the parts are small enough for one of each connection
// to fit in memory, and in what may be at risk.
func (p *Planner) prepareMultipart(ctx context.Context, chosen *state.Parts) (why string, err error) {
	limit := min(p.Memory.Budget(), atrisk.First) / int64(p.Options.Connections)
	if p.Options.Auto {
		limit = autoMultipart // most parts need not fit in memory
	}
	chosen.Size = multipartSize(p.Size, chosen.Size, limit)
	if chosen.Size >= p.Size {
		return "a part of a multipart upload has at least 5 MiB", nil
	}
	return p.start(ctx, p.Wire, chosen)
}

// prepareStream starts the multipart upload of a stream to the object, unless its parts could not be listed.
func (p *Planner) prepareStream(ctx context.Context, chosen *state.Parts) (why string, err error) {
	if why, err = p.unlistable(ctx); why != "" || err != nil {
		return why, err
	}
	chosen.Size = p.Options.streamBase(cmp.Or(p.SpoolSize, p.Memory.Share()))
	return p.start(ctx, p.Wire, chosen)
}

// prepareTemporary starts the multipart upload of a stream to the first temporary object, if temporary objects cost
// nothing, and its parts can be listed.
func (p *Planner) prepareTemporary(ctx context.Context, chosen *state.Parts) (why string, err error) {
	if why, err = p.prepareComposed(ctx, chosen, true); why == "" && err == nil {
		why, err = p.unlistable(ctx)
	}
	if why != "" || err != nil {
		return why, err
	}
	chosen.Size = p.Options.streamBase(p.Memory.Share())
	return p.start(ctx, p.firstTemporary(chosen), chosen)
}

// unlistable returns the reason why the parts of a stream could not be listed, or "". It asks for the permissions if
// they are not known.
func (p *Planner) unlistable(ctx context.Context) (why string, err error) {
	f, release, err := p.bucketFacts(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if !f.asked {
		var refused *session.Error
		refused, err = inquire(ctx, p.Wire, bucket.OpPermissions, f.permissions(p.Wire))
		f.asked = refused == nil && err == nil
	}
	return f.unlistable(), err
}

// bucketFacts returns the facts of the bucket, which no other upload uses until release is called.
func (p *Planner) bucketFacts(ctx context.Context) (f *bucketFacts, release func(), err error) {
	f = p.Buckets.of(p.Wire.Spec.Bucket, p.Wire.Spec.UserProject)
	select {
	case f.asking <- struct{}{}:
		return f, func() { <-f.asking }, nil
	case <-ctx.Done():
		return nil, nil, engine.NewInterruption(ctx, nil)
	}
}

// start starts a multipart upload to the object of x.
func (p *Planner) start(ctx context.Context, x *engine.Requester, chosen *state.Parts) (why string, err error) {
	chosen.Upload, err = startMultipart(ctx, p.Uplink, x)
	if !engine.Refusal(err) || errors.Is(err, session.ErrCredentials) {
		return "", err
	}
	// A stranger refuses if the endpoint, or a proxy before it, has no XML API. The other APIs may work.
	e, _ := errors.AsType[*session.Error](err)
	if stranger := e.Status != 0 && !e.FromService; stranger || p.Compose && !errors.Is(err, session.ErrNotFound) {
		return "multipart uploads are refused: " + e.Cause(), nil
	}
	return "", err
}

// AbortStream aborts the multipart upload of a stream that PlanStream started, and warns if it may be left.
func (p *Planner) AbortStream(ctx context.Context, started *state.Parts) {
	x := p.Wire
	if started.Prefix != "" {
		x = p.firstTemporary(started)
	}
	AbortUnsaved(ctx, p.Uplink, x, started.Upload)
}

// firstTemporary returns a requester for the first temporary object of a stream.
func (p *Planner) firstTemporary(chosen *state.Parts) *engine.Requester {
	f := dividedFile{Division: p.Division}
	f.Journal = &saved.Journal{}
	f.Journal.Begin(chunk.Identity{}, chosen)
	return f.multipartTo(0, session.URI{}).Wire
}

// notComposed returns the reason why an object cannot be composed, or "".
func notComposed(s session.Spec) string {
	switch {
	case !s.EncryptionKey.IsZero():
		return "it has a customer-supplied encryption key"
	case s.MD5 != nil:
		return "a composed object has no MD5"
	case s.IfGenerationNotMatch != nil || s.IfMetagenerationNotMatch != nil:
		return "a compose has no not-match conditions"
	}
	return ""
}

// prepareCompose checks whether the bucket allows temporary objects to be deleted, and what
// they cost. If the bucket has soft delete, the compose request itself will delete
// them, so that the bucket keeps no copies. So it does if their storage class has a minimum
// duration, which is not billed for objects that a compose request deletes:
// https://docs.cloud.google.com/storage/docs/composing-objects
func (p *Planner) prepareCompose(ctx context.Context, chosen *state.Parts) (why string, err error) {
	return p.prepareComposed(ctx, chosen, p.Options.Auto)
}

// prepareFreeCompose is prepareCompose for a bucket whose facts are known, and in which temporary objects
// cost nothing.
func (p *Planner) prepareFreeCompose(ctx context.Context, chosen *state.Parts) (why string, err error) {
	return p.prepareComposed(ctx, chosen, true)
}

func (p *Planner) prepareComposed(ctx context.Context, chosen *state.Parts, free bool) (why string, err error) {
	f, release, err := p.bucketFacts(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if err := f.ask(ctx, p.Wire, free); err != nil {
		return "", err
	}
	folder, lacks, err := f.place(ctx, p.Wire)
	if err != nil {
		return "", err
	}
	why = f.forbidden(lacks)
	if why == "" && free {
		why = f.unknown()
	}
	if why != "" {
		return why, nil
	}
	if chosen.Prefix, err = p.temporaryPrefix(ctx, f, folder); err != nil {
		return "", err
	}
	switch costs := f.costs(chosen.Prefix, p.Wire.Spec.StorageClass); {
	case costs != "" && free:
		return costs, nil
	case costs != "" && !f.warned[costs]:
		f.warned[costs] = true
		p.Wire.Post(engine.Note{Kind: engine.Warning, Cause: costs})
	}
	if f.config != nil && f.config.SoftDelete > 0 || f.minimum(p.Wire.Spec.StorageClass) > 0 {
		chosen.DeleteSources = true
		chosen.Size = max(chosen.Size, chunk.Ceil((p.Size+bucket.ComposeMax-1)/bucket.ComposeMax)) // one compose
	}
	return "", nil
}

// temporaryPrefix returns the prefix of the names of the temporary objects in a folder, "" for the bucket itself. They
// make no folder of their own in a bucket with hierarchical namespace, because it would stay.
func (p *Planner) temporaryPrefix(ctx context.Context, f *bucketFacts, folder string) (string, error) {
	upload := cmp.Or(p.ID, "upload") + "-" + rand.Text()
	if folder != "" {
		return folder + TemporaryName + upload + "-", nil
	}
	switch hierarchical, err := f.hierarchical(ctx, p.Wire); {
	case err != nil:
		return "", err
	case hierarchical:
		return TemporaryName + upload + "-", nil
	}
	return TemporaryDir + upload + "/", nil
}
