"""The words for what there is too little of besides cards, and for cards that stand idle; as in words."""

# code: (English, Chinese)
STOCK: dict[str, tuple[str, str]] = {
    "cpus": (
        "{available} of {total:CPU core is|CPU cores are} free{kept_for}, and it needs {needed}.",
        "{total} 个 CPU 核中有 {available} 个空闲{kept_for}，而任务需要 {needed} 个。",
    ),
    "host_memory": (
        "{available_mib} of {total_mib} of host memory is free{kept_for}, and it needs {needed_mib}.",
        "主机内存 {total_mib} 中有 {available_mib} 空闲{kept_for}，而任务需要 {needed_mib}。",
    ),
    "counter": (
        "The counter {name} has {available} of {total} left{kept_for}, and it needs {needed}.",
        "{name} 共 {total} 个，空闲 {available} 个{kept_for}，而任务需要 {needed} 个。",
    ),
    "no_load": (
        "It has held GPU {cards} without any load for {idle_s} (it has {of:card|cards}).",
        "它占用 GPU {cards} 已 {idle_s}没有负载（共占 {of} 张卡）。",
    ),
    "impossible_cpus": (
        "It can never start on this host: it needs {needed:CPU core|CPU cores}, and no more than {total} can be handed "
        "out.{stays}",
        "在本机无法运行：需要 {needed} 个 CPU 核，而可分配的只有 {total} 个。{stays}",
    ),
    "impossible_host_memory": (
        "It can never start on this host: it needs {needed_mib} of host memory, and no more than {total_mib} can be "
        "handed out.{stays}",
        "在本机无法运行：需要主机内存 {needed_mib}，而可分配的只有 {total_mib}。{stays}",
    ),
    "impossible_counter": (
        "It can never start: it needs {needed} of {name}, and the setting `counters` has {total} of it.{stays}",
        "无法运行：需要 {needed} 个 {name}，而设置 `counters` 中只有 {total} 个。{stays}",
    ),
}
