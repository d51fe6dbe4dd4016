package upload

import (
	"context"
	"io"
	"time"
)

// What the tests need of the unexported parts.

type Bound struct{ *bound }

func NewBound(chunkSize int64) Bound            { return Bound{newBound(chunkSize)} }
func (b Bound) Size() int64                     { return b.size() }
func (b Bound) Passed(n int64, d time.Duration) { b.passed(n, d) }
func (b Bound) Cut(n int64, progress bool)      { b.cut(n, progress) }
func Watched(ctx context.Context, timeout time.Duration, rate int64) (context.Context, func(io.Reader) io.Reader, func()) {
	ctx, w := watched(ctx, timeout, rate)
	return ctx, w.body, w.stop
}

const CheckpointEvery = checkpointEvery
