package badlink

import (
	"encoding/binary"
	"net/netip"
)

// header is what the router reads of an IPv4 packet.
type header struct {
	from, to netip.Addr
	data     int // bytes of TCP data
}

// parse reads the headers of a packet. ok is false if it is not IPv4.
func parse(packet []byte) (h header, ok bool) {
	const tcp = 6
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return h, false
	}
	h.from, h.to = netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))
	ip := int(packet[0]&15) * 4
	if packet[9] == tcp && len(packet) >= ip+20 {
		whole := min(int(binary.BigEndian.Uint16(packet[2:])), len(packet))
		h.data = max(0, whole-ip-int(packet[ip+12]>>4)*4)
	}
	return h, true
}
