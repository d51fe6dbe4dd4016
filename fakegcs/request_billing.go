package fakegcs

import (
	"net/http"
	"strings"

	"gcsup/fakegcs/internal/ops"
)

// checkBilling returns an error if the requester pays for a bucket of q that another principal created, and
// q names no project to bill. Who may bill the project of the bucket, as its creator, need not name one:
// https://cloud.google.com/storage/docs/requester-pays#requirements.
// The project of the first request pays for a whole session.
func (s *Server) checkBilling(q *request) *apiError {
	if q.query.Get("userProject") != "" || q.Header.Get("X-Goog-User-Project") != "" || q.isSession() {
		return nil
	}
	names := []string{q.bucket}
	switch {
	case q.op == ops.BucketInsert, q.op == ops.Unknown:
		return nil
	case q.op == ops.Rewrite && q.xml:
		source, _, _ := strings.Cut(strings.TrimPrefix(q.Header.Get("x-goog-copy-source"), "/"), "/")
		names = append(names, source)
	case q.op == ops.Rewrite:
		names = append(names, q.rest[2])
	}
	if s.store.requesterPays(s.tokens.principal(q.Header), names...) {
		text := "Bucket is requester pays bucket but no user project provided."
		if q.xml {
			text = "Bucket is Requester Pays bucket but no billing project id provided for non-owner."
		}
		return refuse(http.StatusBadRequest, "userProjectMissing", "%s", text)
	}
	return nil
}
