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
	switch q.op {
	case faults.OpNotificationInsert:
		body, err := readMetadata(q.in)
		if err != nil {
			return err.reply(false)
		}
		n, err := a.addNotification(q.bucket, body)
		if err != nil {
			return err.reply(false)
		}
		return jsonReply(http.StatusOK, n.shown(q))
	case faults.OpNotificationDelete:
		if err := a.removeNotification(q.bucket, q.rest[0]); err != nil {
			return err.reply(false)
		}
		return newReply(http.StatusNoContent)
	}
	list, err := a.notifications(q.bucket)
	if err != nil {
		return err.reply(false)
	}
	list = slices.Clone(list) // it is that of the bucket
	for i, n := range list {
		list[i] = n.shown(q)
	}
	if q.op == faults.OpNotificationList {
		return jsonReply(http.StatusOK, struct {
			Kind  string         `json:"kind"`
			Items []notification `json:"items,omitempty"`
		}{"storage#notifications", list})
	}
	i, err := indexNotification(list, q.rest[0])
	if err != nil {
		return err.reply(false)
	}
	return jsonReply(http.StatusOK, list[i])
}

// shown returns n for the reply to q.
func (n notification) shown(q *request) notification {
	n.SelfLink = q.base() + "/storage/v1/b/" + q.bucket + "/notificationConfigs/" + n.ID
	return n
}

func indexNotification(list []notification, id string) (int, *apiError) {
	i := slices.IndexFunc(list, func(n notification) bool { return n.ID == id })
	if i < 0 {
		return 0, refuse(http.StatusNotFound, "notFound", "There is no notification %s.", id)
	}
	return i, nil
}

// notifications returns the notifications of a bucket. The list is never changed in
// place.
func (s *store) notifications(bucket string) ([]notification, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucket)
	if err != nil {
		return nil, err
	}
	return b.Notifications, nil
}

// addNotification adds the notification in body to a bucket.
func (s *store) addNotification(bucket string, body []byte) (notification, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, refused := s.bucketLocked(bucket)
	if refused != nil {
		return notification{}, refused
	}
	var n notification
	if err := strictjson.Decode(body, &n); err != nil {
		return n, invalid("Invalid notification: %v", err)
	}
	switch {
	case n.Topic == "":
		return n, errRequired("topic")
	case n.PayloadFormat != "JSON_API_V1" && n.PayloadFormat != "NONE":
		return n, invalid("Invalid payload_format '%s'. It must be JSON_API_V1 or NONE.", n.PayloadFormat)
	case slices.ContainsFunc(n.EventTypes, func(t string) bool { return !slices.Contains(eventTypes, t) }):
		return n, invalid("Invalid event_types: %s. They must be of %s.", strings.Join(n.EventTypes, ", "), strings.Join(eventTypes, ", "))
	case len(b.Notifications) >= maxNotifications:
		return n, invalid("A bucket has at most %d notifications.", maxNotifications)
	}
	last := 0
	for _, other := range b.Notifications {
		id, _ := strconv.Atoi(other.ID)
		last = max(last, id)
	}
	n.Kind, n.ID, n.SelfLink = "storage#notification", strconv.Itoa(last+1), ""
	n.Etag = n.ID
	return n, s.replaceNotificationsLocked(b, append(slices.Clone(b.Notifications), n))
}

// removeNotification removes a notification from a bucket.
func (s *store) removeNotification(bucket, id string) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucket)
	if err != nil {
		return err
	}
	i, err := indexNotification(b.Notifications, id)
	if err != nil {
		return err
	}
	return s.replaceNotificationsLocked(b, slices.Delete(slices.Clone(b.Notifications), i, i+1))
}

// replaceNotificationsLocked replaces the notifications of b.
func (s *store) replaceNotificationsLocked(b *bucket, list []notification) *apiError {
	was := b.Notifications
	b.Notifications = list
	if err := s.saveBucket(b); err != nil {
		b.Notifications = was
		return errInternal(err)
	}
	return nil
}
