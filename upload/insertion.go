package upload

import (
	"bytes"
	"context"

	"gcsup/session"
)

// smallLimit is the size up to which a file goes in one request that cannot be
// resumed, but carries its checksum.
const smallLimit = 8 << 20

// insertion makes an object in a single request.
type insertion struct {
	*transfer
	data   []byte // the whole object
	crc32c uint32
	state  session.State
}

// perform makes one exchange. The decision table asks for two kinds only: insert
// the object, and look whether an insert whose reply was lost made it.
func (i *insertion) perform(ctx context.Context, step session.Kind) (session.Reply, error) {
	if step == session.Check {
		return i.stat(ctx)
	}
	i.events.post(Event{Kind: Started})
	i.pos.sent.Store(0)
	body := &meter{r: bytes.NewReader(i.data), t: i.transfer}
	r := i.wire.insert(ctx, int64(len(i.data)), i.crc32c, body)
	i.tally.count(&i.pos, 0, r.Sent)
	return r, nil
}

// handleReply asks the decision table what to do.
func (i *insertion) handleReply(_ context.Context, r session.Reply) (session.Action, error) {
	var action session.Action
	i.state.Replayable = true
	i.state, action = session.Decide(i.state, r)
	if action.Kind == session.Done {
		i.retry.succeeded()
	}
	return action, nil
}
