package engine

import (
	"context"
	"time"

	"gcsup/session"
)

// ExchangeKey is the key of the description of an exchange in the context of its request.
type ExchangeKey struct{}

// describe makes an exchange. Its description is reported when the decision after it is known.
func (q *Requester) describe(ctx context.Context, x exchange) session.Reply {
	n := q.uplink.Notes
	if !n.WantsExchange(ctx) {
		return x.call(ctx, x.client, x.body)
	}
	v := &Exchange{Part: q.Part, Attempt: q.Retry.attempts + 1, Offset: q.Pos.Committed.Load(), Began: time.Now()}
	v.Context = context.WithValue(ctx, ExchangeKey{}, v)
	v.Reply = x.call(v.Context, x.client, x.body)
	v.Took = time.Since(v.Began)
	if x.body != nil {
		v.Offset, v.Sent = x.from, max(v.Reply.Sent-x.from, 0)
	}
	if made := q.memory.made; made != nil {
		*made = append(*made, v)
	} else {
		n.Exchange(v) // nothing depends on it
	}
	return v.Reply
}

// beginDecision begins a conversation, whose exchanges are reported by [Requester.decided]. The caller must call end,
// which reports those after which nothing was decided. A conversation may begin within another one.
func (q *Requester) beginDecision() (end func()) {
	outer := q.memory.made
	q.memory.made = new([]*Exchange)
	return func() {
		q.decided(nil)
		q.memory.made = outer
	}
}

// decided reports the exchanges since the last decision, with the action that follows, or nil. It reports a copy, because
// the conversation changes its action, and a failed upload the error in it.
func (q *Requester) decided(next *session.Action) {
	made := q.memory.made
	if len(*made) > 0 && next != nil {
		kept := *next
		if kept.Err != nil {
			kept.Err = new(*kept.Err)
		}
		next = &kept
	}
	for _, v := range *made {
		v.Next = next
		q.uplink.Notes.Exchange(v)
	}
	*made = nil
}
