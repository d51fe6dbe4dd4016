package upload

import (
	"cmp"
	"context"
	"errors"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
)

// partsPlan determines how a new upload is sent in parts.
type partsPlan struct {
	division
	multipart bool // a multipart upload may be used
	compose   bool // temporary objects may be used
	buckets   *bucketTable
	size      int64
	id        string // of the upload, "" if it is not saved
}

// choose returns the parts of the file. If it is sent over one connection, the error is a reason,
// or the parts are nil and there is nothing to report. A multipart upload is started.
func (p *partsPlan) choose(ctx context.Context) (*state.Parts, error) {
	size := p.options.Size(p.size)
	if size == 0 {
		return nil, nil
	}
	ways, why := p.suitable()
	if len(ways) == 0 {
		return nil, why
	}
	if why := p.link.WhyUndivided(p.options); why != nil {
		return nil, why
	}
	seen, err := p.seen(ctx)
	if err == nil {
		err = p.link.WhyUndivided(p.options) // the response time is known now
	}
	if err != nil {
		return nil, err
	}
	for _, prepare := range ways {
		chosen := state.Parts{Size: size, Seen: seen}
		err := prepare(ctx, &chosen)
		refused, ok := err.(parts.Reason)
		if !ok {
			return &chosen, err
		}
		why = refused.After(why)
	}
	return nil, why
}

// wayToJoin completes the parts of a new upload for one way to join them. The error is a reason
// if the bucket or the service does not allow it.
type wayToJoin func(ctx context.Context, chosen *state.Parts) error

// suitable returns the ways to join the parts that support the settings of the object, the
// preferred one first, and the reasons why the others do not.
func (p *partsPlan) suitable() (ways []wayToJoin, why parts.Reason) {
	consider := func(way wayToJoin, not string) {
		if not == "" {
			ways = append(ways, way)
		} else {
			why = parts.Reason{Text: not}.After(why)
		}
	}
	if p.multipart {
		consider(p.prepareMultipart, p.wire.Spec.NotMultipart())
	}
	if p.compose {
		consider(p.prepareCompose, notComposed(p.wire.Spec))
	}
	return ways, why
}

// seen returns the generation of the object at the destination, 0 if there is none. Without it,
// an object that a request with a lost reply made could not be recognized.
func (p *partsPlan) seen(ctx context.Context) (generation int64, err error) {
	if g := p.wire.Spec.IfGenerationMatch; g != nil {
		return *g, nil
	}
	a, err := p.wire.Ask(ctx, p.wire.Stat)
	switch {
	case engine.Refusal(err) && !errors.Is(err, session.ErrCredentials):
		err = parts.Reason{Text: "the object at the destination cannot be read"}
	case err == nil && a.Object != nil:
		generation = a.Object.Generation
	}
	return generation, err
}

// prepareMultipart starts the upload. With InParts, the parts are small enough for one of each connection
// to fit in memory.
func (p *partsPlan) prepareMultipart(ctx context.Context, chosen *state.Parts) error {
	memory := p.memory.Budget() / int64(p.options.Connections)
	if p.options.Auto {
		memory = parts.AutoMin // it is better to read some parts twice than to make all parts small
	}
	chosen.Size = parts.MultipartSize(p.size, chosen.Size, memory)
	if chosen.Size >= p.size {
		return parts.Reason{Text: "a part of a multipart upload has at least 5 MiB"}
	}
	err := p.measureReplies(ctx)
	if err != nil {
		return err
	}
	chosen.Upload, err = startMultipart(ctx, p.uplink, p.wire)
	if engine.Refusal(err) && p.compose && !errors.Is(err, session.ErrCredentials) && !errors.Is(err, session.ErrNotFound) {
		e, _ := errors.AsType[*session.Error](err)
		return parts.Reason{Text: "multipart uploads are refused: " + e.Cause()}
	}
	return err
}

// measureReplies makes requests until the response time is known, unless there is a reason to
// use one connection, which it returns.
func (p *partsPlan) measureReplies(ctx context.Context) error {
	for range parts.NearReplies {
		if why := p.link.WhyUndivided(p.options); why != nil || !p.options.Auto || p.link.Measured() {
			return why
		}
		if _, err := p.wire.Ask(ctx, p.wire.Stat); err != nil && !engine.Refusal(err) {
			return err
		}
	}
	return p.link.WhyUndivided(p.options)
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
// them, so that the bucket keeps no copies.
func (p *partsPlan) prepareCompose(ctx context.Context, chosen *state.Parts) error {
	if why := p.link.WhyUndivided(p.options); why != nil {
		return why
	}
	f := p.buckets.of(p.wire.Spec.Bucket, p.wire.Spec.UserProject)
	select {
	case f.asking <- struct{}{}:
	case <-ctx.Done():
		return engine.NewInterruption(ctx, nil)
	}
	defer func() { <-f.asking }()
	chosen.Prefix = temporaryPrefix(p.id)
	if err := f.ask(ctx, p.wire, chosen.Prefix, p.options.Auto); err != nil {
		return err
	}
	why, costs := f.forbidden(), f.costs(p.wire.Spec.StorageClass)
	switch {
	case why != nil:
	case p.options.Auto:
		why = cmp.Or(f.unknown(), costs)
	case costs != nil && !f.warned[costs]:
		f.warned[costs] = true
		p.wire.Post(engine.Note{Kind: engine.Warning, Cause: costs.Error()})
	}
	if f.config != nil && f.config.SoftDelete > 0 {
		chosen.DeleteSources = true
		chosen.Size = max(chosen.Size, chunk.Ceil((p.size+session.ComposeMax-1)/session.ComposeMax)) // one compose
	}
	return cmp.Or(why, p.link.WhyUndivided(p.options)) // the replies to the checks show the round-trip time
}
