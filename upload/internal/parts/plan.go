package parts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
)

// Plan determines how a new upload is sent in parts.
type Plan struct {
	Division
	Multipart bool // a multipart upload may be used
	Compose   bool // temporary objects may be used
	Buckets   *Buckets
	Size      int64
	ID        string // of the upload, "" if it is not saved
}

// Choose returns the parts of the file. If it is sent over one connection, the error is a reason,
// or the parts are nil and there is nothing to report. A multipart upload is started.
func (p *Plan) Choose(ctx context.Context) (*state.Parts, error) {
	size := p.Options.Size(p.Size)
	if size == 0 {
		return nil, nil
	}
	ways, why := p.suitable()
	if len(ways) == 0 {
		return nil, why
	}
	if p.Options.Auto {
		switch need, why := p.Link.Need(p.Options.Connections); need {
		case connections.One:
			return nil, Reason{Text: why}
		case connections.Unmeasured:
			return nil, Reason{Unmeasured: true}
		}
	}
	seen, err := p.seen(ctx)
	if err != nil {
		return nil, err
	}
	if p.composeFirst() {
		ways = slices.Insert(ways, 0, p.prepareFreeCompose)
	}
	for _, prepare := range ways {
		chosen := state.Parts{Size: size, Seen: seen}
		err := prepare(ctx, &chosen)
		refused, ok := err.(Reason)
		if !ok {
			return &chosen, err
		}
		why = refused.After(why)
	}
	return nil, why
}

// Reason is why a file is sent over one connection. [Plan.Choose] returns it as its error.
type Reason struct {
	Text       string // for events
	Unmeasured bool   // the rate of the first bytes decides, see [connections.Link.Measure]
}

func (r Reason) Error() string { return r.Text }

// After returns the reason of a way to join the parts. before is that of an earlier way, or
// its Text is "".
func (r Reason) After(before Reason) Reason {
	if before.Text != "" && before.Text != r.Text {
		r.Text = before.Text + "; " + r.Text
	}
	return r
}

// wayToJoin completes the parts of a new upload for one way to join them. The error is a reason
// if the bucket or the service does not allow it.
type wayToJoin func(ctx context.Context, chosen *state.Parts) error

// suitable returns the ways to join the parts that support the settings of the object, the
// preferred one first, and the reasons why the others do not.
func (p *Plan) suitable() (ways []wayToJoin, why Reason) {
	consider := func(way wayToJoin, not string) {
		if not == "" {
			ways = append(ways, way)
		} else {
			why = Reason{Text: not}.After(why)
		}
	}
	if p.Multipart {
		consider(p.prepareMultipart, p.Wire.Spec.NotMultipart())
	}
	if p.Compose {
		consider(p.prepareCompose, notComposed(p.Wire.Spec))
	}
	return ways, why
}

// composeFirst reports whether parts of a multipart upload would be slow, or would be at risk together. The service keeps
// what arrived of a session, and nothing of such a part that is not complete. A compose that costs nothing is then better.
func (p *Plan) composeFirst() bool {
	return p.Multipart && p.Compose && notComposed(p.Wire.Spec) == "" && (p.Options.risky(p.Size) || p.Options.Auto && p.Link.Long())
}

// seen returns the generation of the object at the destination, 0 if there is none. Without it,
// an object that a request with a lost reply made could not be recognized.
func (p *Plan) seen(ctx context.Context) (generation int64, err error) {
	if g := p.Wire.Spec.IfGenerationMatch; g != nil {
		return *g, nil
	}
	a, err := p.Wire.Ask(ctx, session.Request{Optional: true}, p.Wire.Stat)
	switch {
	case engine.Refusal(err) && !errors.Is(err, session.ErrCredentials):
		err = Reason{Text: "the object at the destination cannot be read"}
	case err == nil && a.Object != nil:
		generation = a.Object.Generation
	}
	return generation, err
}

// prepareMultipart starts the upload. With InParts, the parts are small enough for one of each connection
// to fit in memory, and in what may be at risk.
func (p *Plan) prepareMultipart(ctx context.Context, chosen *state.Parts) error {
	limit := min(p.Memory.Budget(), atrisk.First) / int64(p.Options.Connections)
	if p.Options.Auto {
		limit = autoMultipart // most parts need not fit in memory
	}
	chosen.Size = multipartSize(p.Size, chosen.Size, limit)
	if chosen.Size >= p.Size {
		return Reason{Text: "a part of a multipart upload has at least 5 MiB"}
	}
	var err error
	chosen.Upload, err = startMultipart(ctx, p.Uplink, p.Wire)
	if !engine.Refusal(err) || errors.Is(err, session.ErrCredentials) {
		return err
	}
	// A stranger refuses if the endpoint, or a proxy before it, has no XML API. The other APIs may work.
	e, _ := errors.AsType[*session.Error](err)
	if stranger := e.Status != 0 && !e.FromService; stranger || p.Compose && !errors.Is(err, session.ErrNotFound) {
		return Reason{Text: "multipart uploads are refused: " + e.Cause()}
	}
	return err
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
func (p *Plan) prepareCompose(ctx context.Context, chosen *state.Parts) error {
	return p.prepareComposed(ctx, chosen, p.Options.Auto)
}

// prepareFreeCompose is prepareCompose for a bucket whose facts are known, and in which temporary objects
// cost nothing.
func (p *Plan) prepareFreeCompose(ctx context.Context, chosen *state.Parts) error {
	return p.prepareComposed(ctx, chosen, true)
}

func (p *Plan) prepareComposed(ctx context.Context, chosen *state.Parts, free bool) error {
	f := p.Buckets.of(p.Wire.Spec.Bucket, p.Wire.Spec.UserProject)
	select {
	case f.asking <- struct{}{}:
	case <-ctx.Done():
		return engine.NewInterruption(ctx, nil)
	}
	defer func() { <-f.asking }()
	if err := f.ask(ctx, p.Wire, free); err != nil {
		return err
	}
	folder, lacks, err := f.place(ctx, p.Wire)
	if err != nil {
		return err
	}
	why := f.forbidden(lacks)
	if why == nil && free {
		why = f.unknown()
	}
	if why != nil {
		return why
	}
	if chosen.Prefix, err = p.temporaryPrefix(ctx, f, folder); err != nil {
		return err
	}
	switch costs := f.costs(chosen.Prefix, p.Wire.Spec.StorageClass); {
	case costs != nil && free:
		return costs
	case costs != nil && !f.warned[costs]:
		f.warned[costs] = true
		p.Wire.Post(engine.Note{Kind: engine.Warning, Cause: costs.Error()})
	}
	if f.config != nil && f.config.SoftDelete > 0 || f.minimum(p.Wire.Spec.StorageClass) > 0 {
		chosen.DeleteSources = true
		chosen.Size = max(chosen.Size, chunk.Ceil((p.Size+session.ComposeMax-1)/session.ComposeMax)) // one compose
	}
	return nil
}

// temporaryPrefix returns the prefix of the names of the temporary objects in a folder, "" for the bucket itself. They
// make no folder of their own in a bucket with hierarchical namespace, because it would stay.
func (p *Plan) temporaryPrefix(ctx context.Context, f *bucketFacts, folder string) (string, error) {
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
