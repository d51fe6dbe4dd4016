package fakegcs

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// notification is a request to publish messages about changes of objects. The server
// keeps it and publishes nothing.
// https://cloud.google.com/storage/docs/json_api/v1/notifications#resource
type notification struct {
	Kind             string            `json:"kind"`
	ID               string            `json:"id"`
	SelfLink         string            `json:"selfLink,omitempty"`
	Etag             string            `json:"etag,omitempty"`
	Topic            string            `json:"topic"`
	EventTypes       []string          `json:"event_types,omitempty"` // empty means all
	CustomAttributes map[string]string `json:"custom_attributes,omitempty"`
	PayloadFormat    string            `json:"payload_format"`
	ObjectNamePrefix string            `json:"object_name_prefix,omitempty"`
}

// maxNotifications is the maximum number for a bucket,
// https://cloud.google.com/storage/quotas#buckets.
const maxNotifications = 100

// eventTypes are the event types that a notification may have.
var eventTypes = []string{"OBJECT_FINALIZE", "OBJECT_METADATA_UPDATE", "OBJECT_DELETE", "OBJECT_ARCHIVE"}

// notificationAPI processes the requests for the notifications of a bucket.
type notificationAPI struct{ *store }

func (a notificationAPI) answer(q *request) *reply {
	var n notification
	if q.op == ops.NotificationInsert {
		if err := q.decode("notification", &n); err != nil {
			return err.reply(false)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err != nil {
		return err.reply(false)
	}
	list := slices.Clone(b.Notifications) // the list of a record is never changed in place
	at := -1
	if len(q.rest) > 0 {
		at = slices.IndexFunc(list, func(n notification) bool { return n.ID == q.rest[0] })
	}
	switch {
	case q.op == faults.OpNotificationList:
		for i, n := range list {
			list[i] = n.shown(q)
		}
		return jsonReply(http.StatusOK, struct {
			Kind  string         `json:"kind"`
			Items []notification `json:"items,omitempty"`
		}{"storage#notifications", list})
	case q.op == ops.NotificationInsert:
		if err := n.check(len(list)); err != nil {
			return err.reply(false)
		}
		last := 0
		if len(list) > 0 {
			last, _ = strconv.Atoi(list[len(list)-1].ID)
		}
		n.Kind, n.ID, n.SelfLink = "storage#notification", strconv.Itoa(last+1), ""
		n.Etag = n.ID
		return a.replaceLocked(b, append(list, n), jsonReply(http.StatusOK, n.shown(q)))
	case at < 0:
		return refuse(http.StatusNotFound, "notFound", "There is no notification %s.", q.rest[0]).reply(false)
	case q.op == ops.NotificationDelete:
		return a.replaceLocked(b, slices.Delete(list, at, at+1), newReply(http.StatusNoContent))
	}
	return jsonReply(http.StatusOK, list[at].shown(q))
}

// replaceLocked replaces the notifications of b, and returns r.
func (a notificationAPI) replaceLocked(b *bucket, list []notification, r *reply) *reply {
	was := b.bucketRecord
	b.Notifications = list
	if err := a.saveRecord(b, was); err != nil {
		return err.reply(false)
	}
	return r
}

// check returns an error if n is not valid, or the bucket has as many as it can have.
func (n notification) check(others int) *apiError {
	switch {
	case n.Topic == "":
		return errRequired("topic")
	case n.PayloadFormat != "JSON_API_V1" && n.PayloadFormat != "NONE":
		return invalid("Invalid payload_format '%s'. It must be JSON_API_V1 or NONE.", n.PayloadFormat)
	case slices.ContainsFunc(n.EventTypes, func(t string) bool { return !slices.Contains(eventTypes, t) }):
		return invalid("Invalid event_types: %s. They must be of %s.", strings.Join(n.EventTypes, ", "), strings.Join(eventTypes, ", "))
	case others >= maxNotifications:
		return invalid("A bucket has at most %d notifications.", maxNotifications)
	}
	return nil
}

// shown returns n for the reply to q.
func (n notification) shown(q *request) notification {
	n.SelfLink = q.base() + "/storage/v1/b/" + q.bucket + "/notificationConfigs/" + n.ID
	return n
}
