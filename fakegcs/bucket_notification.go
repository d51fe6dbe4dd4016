package fakegcs

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/strictjson"
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
	var body []byte
	if q.op == faults.OpNotificationInsert {
		var err *apiError
		if body, err = readMetadata(q.in); err != nil {
			return err.reply(false)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err != nil {
		return err.reply(false)
	}
	switch q.op {
	case faults.OpNotificationInsert:
		return a.insert(b, body)
	case faults.OpNotificationList:
		return jsonReply(http.StatusOK, struct {
			Kind  string         `json:"kind"`
			Items []notification `json:"items,omitempty"`
		}{"storage#notifications", b.Notifications})
	}
	i := slices.IndexFunc(b.Notifications, func(n notification) bool { return n.ID == q.rest[0] })
	switch {
	case i < 0:
		return refuse(http.StatusNotFound, "notFound", "There is no notification %s.", q.rest[0]).reply(false)
	case q.op == faults.OpNotificationGet:
		return jsonReply(http.StatusOK, b.Notifications[i])
	}
	return a.save(b, slices.Delete(slices.Clone(b.Notifications), i, i+1), newReply(http.StatusNoContent))
}

// insert adds a notification. The caller holds a.mu.
func (a notificationAPI) insert(b *bucket, body []byte) *reply {
	var n notification
	if err := strictjson.Decode(body, &n); err != nil {
		return invalid("Invalid notification: %v", err).reply(false)
	}
	switch {
	case n.Topic == "":
		return refuse(http.StatusBadRequest, "required", "Required parameter: topic").reply(false)
	case n.PayloadFormat != "JSON_API_V1" && n.PayloadFormat != "NONE":
		return invalid("Invalid payload_format '%s'. It must be JSON_API_V1 or NONE.", n.PayloadFormat).reply(false)
	case slices.ContainsFunc(n.EventTypes, func(t string) bool { return !slices.Contains(eventTypes, t) }):
		return invalid("Invalid event_types: %s. They must be of %s.", strings.Join(n.EventTypes, ", "), strings.Join(eventTypes, ", ")).reply(false)
	case len(b.Notifications) >= maxNotifications:
		return invalid("A bucket has at most %d notifications.", maxNotifications).reply(false)
	}
	last := 0
	for _, other := range b.Notifications {
		id, _ := strconv.Atoi(other.ID)
		last = max(last, id)
	}
	n.Kind, n.ID, n.SelfLink = "storage#notification", strconv.Itoa(last+1), ""
	n.Etag = n.ID
	return a.save(b, append(slices.Clone(b.Notifications), n), jsonReply(http.StatusOK, n))
}

// save replaces the notifications of b and returns r, or the error. The caller holds
// a.mu.
func (a notificationAPI) save(b *bucket, list []notification, r *reply) *reply {
	was := b.Notifications
	b.Notifications = list
	if err := a.saveBucket(b); err != nil {
		b.Notifications = was
		return errInternal(err).reply(false)
	}
	return r
}
