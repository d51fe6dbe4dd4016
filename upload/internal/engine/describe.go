package engine

import (
	"context"
	"time"

	"gcsup/session"
)

// ExchangeKey is the key of the description of an exchange in the context of its request.
type ExchangeKey struct{}

// undecidedKey is the key of the madeExchanges in a context.
type undecidedKey struct{}

// madeExchanges are the exchanges of one step of a conversation. They are reported when the decision
// is known.
type madeExchanges []func(next *session.Action)

// report reports the exchanges with the action that follows, or nil. It reports a copy, because
// the conversation changes its action, and a failed upload the error in it.
func (m *madeExchanges) report(next *session.Action) {
	if len(*m) > 0 && next != nil {
		kept := *next
		if kept.Err != nil {
			kept.Err = new(*kept.Err)
		}
		next = &kept
	}
	for _, report := range *m {
		report(next)
	}
	*m = nil
}

// describe makes an exchange. It reports its description with the decision after it.
func (q *Requester) describe(ctx context.Context, x exchange) session.Reply {
	n := q.uplink.Notes
	if !n.WantsExchange(ctx) {
		return x.do(ctx, x.client, x.body)
	}
	v := &Exchange{Part: q.Part, Attempt: q.Retry.attempts + 1, Offset: q.Pos.Committed.Load(), Began: time.Now()}
	v.Context = context.WithValue(ctx, ExchangeKey{}, v)
	v.Reply = x.do(v.Context, x.client, x.body)
	v.Took = time.Since(v.Began)
	if x.body != nil {
		v.Offset, v.Sent = x.from, max(v.Reply.Sent-x.from, 0)
	}
	report := func(next *session.Action) {
		v.Next = next
		n.Exchange(v)
	}
	if made, ok := ctx.Value(undecidedKey{}).(*madeExchanges); ok {
		*made = append(*made, report)
	} else {
		report(nil)
	}
	return v.Reply
}
