package examples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
)

// Steps uploads the first size bytes of r, one request at a time. It is for a program
// that must decide itself when each request is sent. session.Decide returns the next
// step. upload.Uploader does more: it detects stalls, checks preconditions before the
// last byte, and saves the session.
func Steps(ctx context.Context, client *session.Client, spec session.Spec, r io.ReaderAt, size, perRequest int64) (*session.Object, error) {
	source := chunk.FromReaderAt(r, size)
	sum := chunk.NewPrefixCRC(chunk.Checkpoint{})
	waiter := backoff.Waiter{Budget: backoff.Budget{AtStake: size}}
	defer waiter.Close()
	last := chunk.LastBoundary(size) // where the last request starts
	perRequest = chunk.Ceil(perRequest)

	var uri session.URI
	var opened time.Time // by the server's clock
	state := session.State{Size: size, Replayable: true}
	action := session.Action{Step: session.Begin}
	for {
		if action.Wait {
			if err := waiter.Wait(ctx, backoff.Failure{RetryAfter: action.RetryAfter}); err != nil {
				return nil, errors.Join(err, action.Err)
			}
		}
		var reply session.Reply
		switch action.Step {
		case session.Begin:
			reply = client.Start(ctx, spec, size)
			uri, opened = reply.URI, reply.Date
			sum.Rewind(0)
		case session.Send:
			// Bytes that are sent again are compared with those sent before.
			sum.Rewind(state.Committed)
			rng := chunk.Range{From: state.Committed, To: min(chunk.Floor(state.Committed+perRequest), last)}
			final := state.Committed >= last
			if final {
				rng.To = size
			}
			body := source.Body(rng, sum)
			if final {
				tail, err := io.ReadAll(body) // afterwards sum has the checksum of the object
				if err != nil {
					return nil, err
				}
				reply = client.Finalize(ctx, uri, rng, size, sum.Sum(), bytes.NewReader(tail))
			} else {
				reply = client.Put(ctx, uri, rng, size, body)
			}
			_ = body.Close()
			if err := body.Err(); err != nil {
				return nil, err
			}
		case session.Finish:
			reply = client.Finalize(ctx, uri, chunk.Range{From: size, To: size}, size, sum.Sum(), nil)
		case session.Query:
			reply = client.Query(ctx, uri)
		case session.Check:
			reply = client.Stat(ctx, spec)
			if o := reply.Object; o != nil {
				reply.Ours = o.Size == size && o.CRC32C == sum.Sum()
				reply.Older = o.Created.Before(opened)
			}
		case session.Done:
			if action.Object.Size != size || action.Object.CRC32C != sum.Sum() {
				return nil, fmt.Errorf("%w: the object is not the source", session.ErrChecksum)
			}
			return action.Object, nil
		case session.Fail:
			return nil, action.Err
		}
		committed := state.Committed
		state, action = session.Decide(state, reply)
		if state.Committed > committed {
			waiter.Progress()
		}
	}
}
