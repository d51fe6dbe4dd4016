package fakegcs

import (
	"net/http"
	"time"
)

// errNoSoftDelete refuses what needs a soft delete policy, as
// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/restore.zig has
// measured.
func errNoSoftDelete() *apiError { return invalid("bucket soft delete policy must be set.") }

// findSoftDeleted finds a soft-deleted generation. The caller releases the blob.
func (s *Server) findSoftDeleted(bucketName, name string, generation int64) (*version, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucketName)
	if err != nil {
		return nil, err
	}
	if b.softDeleteFor() == 0 {
		return nil, errNoSoftDelete()
	}
	if generation == 0 {
		return nil, refuse(http.StatusBadRequest, "required", "You must specify a generation.")
	}
	s.expireLocked(b, s.now())
	if g := b.objects[name]; g != nil {
		for _, v := range g.soft {
			if v.Generation == generation {
				v.blob.Retain()
				return v, nil
			}
		}
	}
	return nil, errNoObject(bucketName, name)
}

// restore makes a new live generation of a soft-deleted one,
// https://cloud.google.com/storage/docs/json_api/v1/objects/restore.
func (s *Server) restore(q *request) *reply {
	o, err := s.restoreObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	return jsonReply(http.StatusOK, q.resource(o).withheld(nil))
}

func (s *Server) restoreObject(q *request) (*Object, *apiError) {
	generation, err := generationParam(q.query.Get("generation"))
	if err != nil {
		return nil, err
	}
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return nil, err
	}
	v, err := s.findSoftDeleted(q.bucket, q.object, generation)
	if err != nil {
		return nil, err
	}
	o := v.clone()
	o.SoftDeleteTime, o.HardDeleteTime, o.TimeDeleted = time.Time{}, time.Time{}, time.Time{}
	made, err := s.publish(o, v.blob, cond)
	if err != nil {
		v.blob.Release()
		return nil, err
	}
	return made, nil
}
