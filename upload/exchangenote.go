package upload

import (
	"context"
	"time"

	"gcsup/session"
)

// exchangeKey is the key of the description of an exchange in the context of its request.
type exchangeKey struct{}

// undecidedKey is the key of the exchanges in a context whose decision is not known yet.
type undecidedKey struct{}

// madeExchanges are the exchanges of one step of a conversation.
type madeExchanges []func(next *session.Action)

// undecided returns a context for one step of a conversation. Its exchanges are reported
// when the decision is known.
func undecided(ctx context.Context) (context.Context, *madeExchanges) {
	made := new(madeExchanges)
	return context.WithValue(ctx, undecidedKey{}, made), made
}

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
func (q *requester) describe(ctx context.Context, x exchange) session.Reply {
	n := q.uplink.notes
	if !n.wantsExchange(ctx) {
		return x.do(ctx, x.client, x.body)
	}
	v := &exchangeNote{part: q.part, attempt: q.retry.attempts + 1, offset: q.pos.committed.Load(), began: time.Now()}
	v.ctx = context.WithValue(ctx, exchangeKey{}, v)
	v.reply = x.do(v.ctx, x.client, x.body)
	v.took = time.Since(v.began)
	if x.body != nil {
		v.offset, v.sent = x.from, max(v.reply.Sent-x.from, 0)
	}
	report := func(next *session.Action) {
		v.next = next
		n.exchange(v)
	}
	if made, ok := ctx.Value(undecidedKey{}).(*madeExchanges); ok {
		*made = append(*made, report)
	} else {
		report(nil)
	}
	return v.reply
}
