package fakegcs

import "net/http"

// delete deletes one generation of an object, or archives the live one.
func (a objectAPI) delete(q *request) *reply {
	generation, cond, err := q.target()
	if err != nil {
		return err.reply(q.xml)
	}
	if err := a.deleteObject(q.bucket, q.object, generation, cond); err != nil {
		return err.reply(q.xml)
	}
	return newReply(http.StatusNoContent)
}
