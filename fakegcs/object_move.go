package fakegcs

import (
	"net/http"
	"time"
)

// move renames an object within its bucket, in one step,
// https://cloud.google.com/storage/docs/json_api/v1/objects/move.
func (a objectAPI) move(q *request) *reply {
	o, err := a.moveObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	return objectReply(http.StatusOK, q.resource(o))
}

func (a objectAPI) moveObject(q *request) (*Object, *apiError) {
	cond, err := q.conditions()
	if err != nil {
		return nil, err
	}
	source, err := parseConditions(q.query, nil, "ifSource")
	if err != nil {
		return nil, err
	}
	return a.rename(q.bucket, q.object, q.rest[2], source, cond)
}

// rename makes the object to, with the bytes and the metadata of the live object from, and
// removes from for good: its soft delete does not apply.
func (s *store) rename(bucketName, from, to string, fromCond, toCond conditions) (*Object, *apiError) {
	if from == to {
		return nil, invalid("The source and the destination of a move must have different names.")
	}
	if err := checkName(to); err != nil {
		return nil, err
	}
	defer s.claimBoth(bucketName, from, to)()
	s.mu.Lock()
	defer s.unlock()
	b, v, err := s.versionLocked(bucketName, from, 0)
	if err != nil {
		return nil, err
	}
	now := s.now()
	if err := fromCond.check(v.Object); err != nil {
		return nil, err
	}
	if err := b.checkRetire(v, now); err != nil {
		return nil, err
	}
	o := v.clone()
	o.Name, o.RetentionExpirationTime = to, time.Time{}
	made, err := s.publishLocked(o, v.blob.Retain(), toCond, "", func(*Object) {})
	if err != nil {
		v.blob.Release()
		return nil, err
	}
	if b.versioned() {
		err = s.retireLocked(b, v, now)
	} else {
		err = s.dropLocked(b, v, now, 0)
	}
	if err != nil { // the new object exists, so that the request must not fail
		s.log.Warn("fakegcs: remove the source of a move", "bucket", bucketName, "object", from, "err", err)
	}
	return made, nil
}
