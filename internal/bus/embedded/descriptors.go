package embedded

import "github.com/troupe-run/troupe/internal/bus/statedir"

// nodeDescriptors is how many file descriptors the port and the socket leave to the node itself:
// logs, pipes of tools and servers, connections to models.
const nodeDescriptors = 512

// connsMin is the least number of connections that the port, and the socket, accept.
const connsMin = 16

// limitConnections reduces the connection limits of the port and of the socket to what the
// limit on open files allows: each connection takes one descriptor.
func limitConnections(files uint64) (port, socket int) {
	left := connsMin * 2
	if files > nodeDescriptors {
		left = max(left, int(min(files-nodeDescriptors, PortConnsMax+SocketConnsMax)))
	}
	return min(PortConnsMax, left/2), min(SocketConnsMax, left/2)
}

// connectionLimits applies limitConnections to the limit of this process. It logs a reduction.
func (e *Server) connectionLimits() (port, socket int) {
	files := statedir.OpenFilesMax()
	port, socket = limitConnections(files)
	if port < PortConnsMax || socket < SocketConnsMax {
		e.cfg.Logger.Warn("the limit on open files leaves room for fewer connections; raise it (ulimit -n, LimitNOFILE)",
			"open_files_max", files, "for_the_node", nodeDescriptors, "port_connections_max", port, "socket_connections_max", socket, "default", PortConnsMax)
	}
	return port, socket
}
