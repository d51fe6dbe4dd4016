package upload

import (
	"slices"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// nextToken is the Token that is saved next, which may be newer than the one in the
// store. It does no I/O. The journal serializes the calls.
type nextToken struct {
	draft  session.Token // the fields of every Token of this upload: ID, endpoint, Spec, path
	file   *source.File
	source source.Resumable // what is sent of file

	token   *session.Token // replaced and never changed; nil before started
	version int64          // of token; counts the calls of change
	checked time.Time      // the last checkpoint
}

// started makes the Token of a new session.
func (n *nextToken) started(uri session.URI, restarts int) {
	token := n.draft
	token.Created, token.URI, token.Restarts = time.Now(), uri, restarts
	token.Source = n.file.Identity()
	if n.draft.Spec.Gzip {
		token.Gzip = &session.GzipState{}
	}
	n.token = &token
}

// startedParts makes the Token of an upload in parts.
func (n *nextToken) startedParts(parts session.Parts) {
	token := n.draft
	token.Created, token.Source, token.Parts = time.Now(), n.file.Identity(), &parts
	n.token = &token
}

// sending updates the Token before a request that sends the bytes from sent to to.
func (n *nextToken) sending(committed, sent, to int64) {
	token := *n.token
	token.Committed = committed
	if to > token.HighWater {
		token.Gzip = (*session.GzipState)(n.source.Compression(to))
	}
	token.HighWater = max(token.HighWater, to)
	if !n.file.Copied() { // otherwise the bytes of the source must still be compared
		token.Source = n.file.Identity()
	}
	token.Checkpoints = withCheckpoint(token.Checkpoints, n.source.Newest(sent, to), committed)
	n.token, n.checked = &token, time.Now()
}

// checkpoint adds the newest checksum to the Token if it should be saved.
func (n *nextToken) checkpoint(sent int64, now time.Time) bool {
	last := lastCheckpoint(n.token.Checkpoints)
	if !checkpointDue(sent, last, now.Sub(n.checked)) {
		return false
	}
	c := n.source.Newest(sent, sent)
	if c.Offset <= last {
		return false
	}
	token := *n.token
	token.Checkpoints = withCheckpoint(token.Checkpoints, c, token.Committed)
	n.token, n.checked = &token, now
	return true
}

// rejected records that the service refused data at offset.
func (n *nextToken) rejected(offset int64) {
	token := *n.token
	token.RejectedAt = offset + 1
	n.token = &token
}

// change replaces the Token of an upload in parts by a changed copy, and returns its
// version.
func (n *nextToken) change(f func(*session.Token)) int64 {
	token := *n.token
	parts := *token.Parts
	parts.List = slices.Clone(parts.List)
	token.Parts = &parts
	f(&token)
	n.token = &token
	n.version++
	return n.version
}
