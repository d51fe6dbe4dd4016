package fakegcs

import (
	"net/http"
	"time"
)

// restore copies a soft-deleted generation to a new live one,
// https://cloud.google.com/storage/docs/json_api/v1/objects/restore.
func (a objectAPI) restore(q *request) *reply {
	o, err := a.restoreObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	return objectReply(http.StatusOK, q.resource(o).withoutChecksums(nil))
}

func (a objectAPI) restoreObject(q *request) (*Object, *apiError) {
	generation, cond, err := q.target()
	if err != nil {
		return nil, err
	}
	v, err := a.findSoftDeleted(q.bucket, q.object, generation)
	if err != nil {
		return nil, err
	}
	o := v.clone()
	o.SoftDeleteTime, o.HardDeleteTime, o.TimeDeleted = time.Time{}, time.Time{}, time.Time{}
	made, err := a.publish(o, v.blob, cond)
	if err != nil {
		v.blob.Release()
		return nil, err
	}
	return made, nil
}
