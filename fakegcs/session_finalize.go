package fakegcs

// finalize makes the object. The caller holds u.mu. If it fails, the session is dead,
// because no later request could succeed. After a failure of the server, such as a full
// disk, the session stays active.
func (u *session) finalize(q *request) *reply {
	if wait := q.fault.session.finalizeAfter; wait > 0 {
		u.mu.Unlock()
		u.store.wait(q.Context(), wait, nil)
		u.mu.Lock()
		if r := u.closedReplyLocked(q); r != nil {
			return r // another request was faster
		}
		if u.blob.Size() != u.Total { // a fault removed bytes meanwhile
			return u.incompleteLocked(q)
		}
	}
	fail := func(cause *apiError) *reply {
		if cause.status/100 != 5 {
			if err := u.endLocked(dead, cause); err != nil {
				cause = err
			}
		}
		return u.mark(cause.reply(u.XML))
	}
	o := u.Meta.clone()
	o.Size, o.CRC32C, o.MD5 = u.blob.Size(), CRC32C(u.sum.CRC32C()), u.sum.MD5()
	var last checksums // declared by the last request
	if err := last.addHeader(q.Header); err != nil {
		return fail(err)
	}
	for _, want := range []checksums{{u.CRC32C, u.MD5}, last} {
		if err := want.check(o); err != nil {
			return fail(err)
		}
	}
	if !u.XML { // https://cloud.google.com/storage/docs/resumable-uploads: metadata may come with the last request
		o.Metadata = addMetadataHeaders(o.Metadata, q.Header, "X-Goog-Meta-")
		if err := checkMetadata(o.Metadata); err != nil {
			return fail(err)
		}
	}
	if _, err := u.store.publishUpload(o, u.blob, u.Cond, u.ID, func(made *Object) {
		u.Object = made
		_ = u.endLocked(final, nil) // never fails
	}); err != nil {
		return fail(err)
	}
	return u.finishedReply(q)
}
