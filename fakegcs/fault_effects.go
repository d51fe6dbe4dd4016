package fakegcs

import "time"

// fault is the effect of a fault plan or a retry test on one request. Each handler
// reads the fields that concern it and does not know the effects. newFault sets the
// fields of one effect. The zero value does nothing.
type fault struct {
	effect     Effect // for the request log
	connection bool   // it acts on the connection, not on the reply
	entry      entryFault
	body       bodyFault
	session    sessionFault
	object     objectFault
	reply      replyFault
}

// entryFault acts before the operation.
type entryFault struct {
	status  *Action // the reply instead of that of the operation, or nil
	revoke  bool    // the bearer token is refused from now on
	hangUp  bool    // there is no reply
	wait    bool    // wait for waitFor, or indefinitely if that is 0
	waitFor time.Duration
	stalled bool // the waiting request does not block its session
}

// bodyFault acts on the request's body at the offset at.
type bodyFault struct {
	cut, stall, corrupt bool
	at                  int64
	stallFor            time.Duration // 0 means indefinitely
}

// sessionFault acts on an upload session. A zero number does nothing.
type sessionFault struct {
	forget bool      // the session is no longer found
	end    string    // the state in which it ends: dead or canceled
	cause  *apiError // of a dead one

	foreign int64 // number of zeros from another client
	rewind  int64 // number of lost bytes

	short       int64         // number of bytes of the request that are not kept
	statusAfter *Action       // the reply after the bytes up to keepTo are kept, or nil
	keepTo      int64         // with statusAfter: an offset in the object
	hideFor     time.Duration // how long the older offset is reported after a request that is cut off

	notFinal      bool          // do not make the object
	finalizeAfter time.Duration // wait before making the object

	noRange bool  // leave Range out of the reply
	rangeBy int64 // report that many bytes more than are committed
}

// objectFault acts on the object in the reply.
type objectFault struct{ wrongHash, omitSize bool }

// replyFault acts on the reply. Bytes are those of its body.
type replyFault struct {
	early       bool // reply before the request's body is read
	readFirst   bool // without a reply: read the body first, so that the close is in order
	reset       bool // without a reply: reset the connection
	lose        bool // reset the connection instead of a reply
	truncate    bool // end the body after truncateTo bytes
	truncateTo  int64
	cut         bool // send cutAfter bytes, then close
	cutAfter    int64
	hold        bool // send holdAfter bytes, then wait for holdFor, or indefinitely if that is 0
	holdAfter   int64
	holdFor     time.Duration
	lastOne     bool          // announce that the connection ends
	closesAfter time.Duration // close the connection after this time, without an announcement
}

// newFault returns the fault of an action; a nil do is none. data reports whether the
// request brings bytes to a session.
func newFault(do *Action, data bool) fault {
	if do == nil {
		return fault{}
	}
	f := fault{effect: do.Effect}
	switch do.Effect {
	case EffectStatus:
		f.entry.status, f.reply.early = do, do.Early
	case EffectStatusAfter:
		f.reply.early = do.Early
		if data {
			f.session.statusAfter, f.session.keepTo = do, do.Bytes
		} else {
			f.entry.status = do
		}
	case EffectRevoke:
		f.entry.revoke = true
	case EffectReset:
		f.connection, f.entry.hangUp, f.reply.reset = true, true, true
	case EffectClose:
		f.connection, f.entry.hangUp, f.reply.readFirst = true, true, true
	case EffectStall:
		f.entry.wait, f.entry.waitFor, f.entry.stalled = true, do.For, true
	case EffectDelay:
		f.entry.wait, f.entry.waitFor = true, do.For

	case EffectCutRequest:
		f.body.cut, f.body.at = true, do.Bytes
	case EffectLateCommit:
		f.body.cut, f.body.at = true, do.Bytes
		f.session.hideFor = do.For
	case EffectStallBody:
		f.body.stall, f.body.at, f.body.stallFor = true, do.Bytes, do.For
	case EffectCorrupt:
		f.body.corrupt, f.body.at = true, do.Bytes

	case EffectNotFound:
		f.session.forget = true
	case EffectGone:
		f.session.end, f.session.cause = dead, faultCause(do)
	case EffectCanceled:
		f.session.end = canceled
	case EffectForeignWrite:
		f.session.foreign = do.Bytes
	case EffectRewind:
		f.session.rewind = do.Bytes
	case EffectShortCommit:
		f.session.short = do.Bytes
	case EffectNotFinal:
		f.session.notFinal = true
	case EffectSlowFinalize:
		f.session.finalizeAfter = do.For
	case EffectNoRange:
		f.session.noRange = true
	case EffectWrongRange:
		f.session.rangeBy = do.Bytes

	case EffectWrongHash:
		f.object.wrongHash = true
	case EffectOmitSize:
		f.object.omitSize = true

	case EffectLoseReply:
		f.connection, f.reply.lose = true, true
	case EffectTruncateReply:
		f.reply.truncate, f.reply.truncateTo = true, do.Bytes
	case EffectCutReply:
		f.connection, f.reply.cut, f.reply.cutAfter = true, true, do.Bytes
	case EffectStallReply:
		f.connection, f.reply.hold, f.reply.holdAfter, f.reply.holdFor = true, true, do.Bytes, do.For
	case EffectGoAway:
		f.connection, f.reply.lastOne = true, true
	case EffectCloseAfter:
		f.connection, f.reply.lastOne, f.reply.closesAfter = true, true, do.For
	}
	return f
}
