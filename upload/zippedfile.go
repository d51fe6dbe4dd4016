package upload

import (
	"context"
	"time"

	"gcsup/upload/internal/content"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/source"
)

// zippedFile is what is known of a compressed file before it is divided. Its size is not known, as that of a stream.
type zippedFile struct {
	held    bool            // it may be divided, and reads little until that is decided
	noticed <-chan struct{} // see holdStream
	took    time.Duration   // to compress the first window
	why     parts.Reasons   // why it is sent over one connection; nil if it is small, or the caller did not ask for parts
}

// loadHeld compresses the first window of a file. If the file may be divided, little more is compressed until
// planZipped has decided that.
func (f *fileUpload) loadHeld(ctx context.Context, zipped *source.Gzip) (content.Loaded, error) {
	f.zipped = zippedFile{}
	switch {
	case f.u.opts.Parallel.options().Size(f.file.Total()) == 0:
		return zipped.LoadWindow(ctx)
	case f.journal.Lease() == nil:
		f.zipped.why = parts.Reasons{"it is not saved, so that its parts could not be removed after a crash"}
		return zipped.LoadWindow(ctx)
	}
	if f.zipped.held, f.zipped.why = f.undivided(); !f.zipped.held {
		return zipped.LoadWindow(ctx)
	}
	began := time.Now()
	loaded, err := zipped.LoadHeld(ctx, func(s *source.Stream) { f.zipped.noticed = holdStream(&f.u.opts, s) })
	f.zipped.took = time.Since(began)
	return loaded, err
}

// planZipped returns how a compressed file is sent. Unlike a stream, it has one multipart upload to the object.
func (f *fileUpload) planZipped(ctx context.Context, zipped *source.Gzip) (plan parts.Plan, err error) {
	z := &f.zipped
	if !z.held {
		return parts.Plan{Why: z.why}, nil
	}
	if patience := f.u.opts.patience(); z.took > patience {
		plan.Why = slowSource(patience)
	} else if long, before, failed := isLong(ctx, f.call, zipped.Held(), z.noticed); long && failed == nil {
		planner := streamPlanner(f.call, f.result.label.get().id)
		planner.Before = before
		plan, err = planner.PlanStream(ctx)
	} else {
		err = failed
	}
	if plan.Parts == nil {
		zipped.Held().Continue()
	}
	return plan, err
}

// newParts returns the file in the parts of the journal. fresh reports that the upload was just started.
func (f *fileUpload) newParts(fresh bool) *partedFile {
	zipped, ok := f.source.(*source.Gzip)
	if !ok {
		return newPartedFile(f.call, f.file, fresh)
	}
	d := division(f.call, nil)
	d.Zipped = zipped
	return newParted(f.call, d, fresh)
}
